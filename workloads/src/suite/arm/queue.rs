//! The queue of buffers between the producer and the writers, and the producer's thread. Locked
//! once per buffer, not per record.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::thread::JoinHandle;

use loadprint_recording::clock::monotonic_ns;

use super::record::Buffer;
use super::record::Source;
use crate::lock::lock;

/// The times that the two sides waited for each other since the phase started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waits {
    /// Of the producer, because all buffers were full: the writers are the bottleneck.
    pub producer_ns: i64,
    /// Of all writers together, because no buffer was full: the producer is the bottleneck.
    pub writers_ns: i64,
}

#[derive(Debug, Default)]
struct State {
    full: VecDeque<Buffer>,
    empty: Vec<Buffer>,
    /// Buffers that this phase does not use.
    spare: usize,
    stopping: bool,
    closed: bool,
    waits: Waits,
}

/// Full and empty buffers.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    source: Mutex<Source>,
    spare_if_timed: usize,
    producer: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// This number of buffers, filled from `source`; a phase that ends by time uses `if_timed` of them.
    pub fn new(source: Source, buffers: usize, if_timed: usize) -> Self {
        let state = State {
            empty: (0..buffers).map(|_| Buffer::default()).collect(),
            closed: true,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            source: Mutex::new(source),
            spare_if_timed: buffers.saturating_sub(if_timed),
            producer: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Starts the producer, which ends after `records` records if a number is given. A phase that
    /// ends by time, as a warm-up, writes what is left in the queue after its end: few buffers keep
    /// that short.
    pub fn start(queue: &Arc<Self>, records: Option<u64>) {
        queue.stop();
        let mut state = queue.lock();
        (state.stopping, state.closed, state.waits) = (false, false, Waits::default());
        state.spare = if records.is_none() {
            queue.spare_if_timed
        } else {
            0
        };
        let producer = Arc::clone(queue);
        let named = thread::Builder::new().name("producer".to_owned());
        match named.spawn(move || producer.produce(records)) {
            Ok(handle) => *lock(&queue.producer) = Some(handle),
            // The writers end at the closed queue: the run reports no events instead of hanging.
            Err(_) => state.closed = true,
        }
    }

    /// Ends the producer; full buffers remain for the writers.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
        let handle = lock(&self.producer).take();
        if let Some(handle) = handle {
            // A panic of the producer is already printed, and the writers end at the closed queue.
            drop(handle.join());
            self.close();
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn produce(&self, records: Option<u64>) {
        let mut source = lock(&self.source);
        let mut left = records.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(mut buffer) = self.take_empty() else {
                break;
            };
            source.fill(&mut buffer, usize::try_from(left).unwrap_or(usize::MAX));
            left -= buffer.records.len() as u64;
            self.lock().full.push_back(buffer);
            self.changed.notify_all();
        }
        self.close();
    }

    fn take_empty(&self) -> Option<Buffer> {
        let mut state = self.lock();
        let start = monotonic_ns();
        while state.empty.len() <= state.spare && !state.stopping {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits.producer_ns += monotonic_ns() - start;
        if state.stopping { None } else { state.empty.pop() }
    }

    /// Waits for a full buffer and returns the oldest; none when the producer has ended and the
    /// queue is empty.
    pub fn pop(&self) -> Option<Buffer> {
        let mut state = self.lock();
        let start = monotonic_ns();
        while state.full.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits.writers_ns += monotonic_ns() - start;
        state.full.pop_front()
    }

    /// Returns a buffer to the producer.
    pub fn give_back(&self, buffer: Buffer) {
        self.lock().empty.push(buffer);
        self.changed.notify_all();
    }

    /// The times that the sides waited.
    pub fn waits(&self) -> Waits {
        self.lock().waits
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Full;
    use super::super::scenario::Mix;
    use super::super::scenario::SCENARIOS;
    use super::*;
    use crate::random::Rng;

    fn queue(records: usize, buffers: usize) -> Arc<Queue> {
        let mix = Mix::only(SCENARIOS[0]);
        let source = Source::new(mix, Full::Records(records), Rng::new(1, 1));
        Arc::new(Queue::new(source, buffers, 3))
    }

    #[test]
    fn a_phase_that_ends_by_time_uses_few_buffers_and_one_by_count_all() {
        let timed = queue(10, 8);
        Queue::start(&timed, None);
        let taken = [timed.pop(), timed.pop(), timed.pop()];
        assert!(taken.iter().all(Option::is_some));
        timed.stop();
        assert!(timed.pop().is_none(), "a fourth buffer was filled");
        let counted = queue(10, 8);
        Queue::start(&counted, Some(80));
        for _ in 0..8 {
            assert!(counted.pop().is_some(), "without a buffer given back");
        }
    }

    #[test]
    fn a_fixed_count_ends_with_a_smaller_buffer() {
        let queue = queue(10, 2);
        Queue::start(&queue, Some(35));
        let mut sizes = Vec::new();
        while let Some(buffer) = queue.pop() {
            sizes.push(buffer.records.len());
            queue.give_back(buffer);
        }
        assert_eq!(sizes, [10, 10, 10, 5]);
    }

    #[test]
    fn full_buffers_remain_after_stop_and_a_new_phase_restarts_the_count() {
        let queue = queue(10, 3);
        Queue::start(&queue, None);
        let first = queue.pop().unwrap();
        queue.give_back(first);
        queue.stop();
        while let Some(buffer) = queue.pop() {
            queue.give_back(buffer);
        }
        Queue::start(&queue, Some(1));
        assert_eq!(queue.pop().unwrap().records.len(), 1);
        assert!(queue.pop().is_none());
    }
}
