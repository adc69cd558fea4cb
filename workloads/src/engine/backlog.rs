//! What waits in an open loop: arrivals that are due and not begun. Looked at ten times a second, never a reason to stop.

use super::Worker;
use super::schedule::ArrivalCursor;

/// At one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Due and not begun; sysbench's queue length.
    pub waiting: u64,
    /// Begun and not ended; sysbench's concurrency.
    pub running: u64,
}

/// What became of the arrivals of `measure`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Due until the time was over.
    pub due: u64,
    /// Of these, begun.
    pub begun: u64,
    /// The max_events that were seen waiting.
    pub max_waiting: u64,
}

impl ArrivalCounts {
    /// How many waited when the time was over; they were never run.
    pub fn left(&self) -> u64 {
        self.due.saturating_sub(self.begun)
    }

    /// True if the server kept up: at the end no more than a hundredth of the arrivals waited, or a burst of ten.
    pub fn rate_held(&self) -> bool {
        self.left() <= (self.due / 100).max(10)
    }
}

/// Follows the arrivals of one phase.
#[derive(Debug)]
pub struct BacklogMonitor {
    cursor: ArrivalCursor,
    /// Of `--events`: later arrivals are never due.
    max_events: u64,
    begun_before: u64,
    arrived: ArrivalCounts,
}

impl BacklogMonitor {
    /// From the phase's begin on, when nothing runs.
    pub fn new(cursor: ArrivalCursor, events: Option<u64>, workers: &[Worker]) -> Self {
        Self {
            cursor,
            max_events: events.unwrap_or(u64::MAX),
            begun_before: workers.iter().map(Worker::begun).sum(),
            arrived: ArrivalCounts::default(),
        }
    }

    /// How it is now.
    pub fn sample(&mut self, workers: &[Worker], now_ns: i64) -> Backlog {
        // In this order, so that neither difference can be negative for a thread that goes on meanwhile.
        let ended: u64 = workers.iter().map(Worker::ended).sum();
        let begun: u64 = workers.iter().map(Worker::begun).sum();
        let due = self.cursor.due_by(now_ns).min(self.max_events);
        self.arrived.due = due;
        self.arrived.begun = begun - self.begun_before;
        let waiting = self.arrived.left();
        self.arrived.max_waiting = self.arrived.max_waiting.max(waiting);
        Backlog {
            waiting,
            running: begun.saturating_sub(ended),
        }
    }

    /// What has become of them by the last look.
    pub fn arrived(&self) -> ArrivalCounts {
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_when_hardly_anything_waits_at_the_end() {
        let arrived = |due, begun| ArrivalCounts {
            due,
            begun,
            max_waiting: due,
        };
        assert!(arrived(100_000, 99_000).rate_held() && !arrived(100_000, 98_999).rate_held());
        assert!(arrived(50, 40).rate_held() && !arrived(50, 39).rate_held());
    }
}
