//! What waits in an open loop: arrivals that are due and not begun. Looked at ten times a second, never a reason to stop.

use super::Worker;
use super::schedule::Lookout;

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
pub struct Arrived {
    /// Due until the time was over.
    pub due: u64,
    /// Of these, begun.
    pub begun: u64,
    /// The most that were seen waiting.
    pub most_waiting: u64,
}

impl Arrived {
    /// How many waited when the time was over; they were never run.
    pub fn left(&self) -> u64 {
        self.due.saturating_sub(self.begun)
    }

    /// True if the server kept up: at the end no more than a hundredth of the arrivals waited, or a burst of ten.
    pub fn held(&self) -> bool {
        self.left() <= (self.due / 100).max(10)
    }
}

/// Follows the arrivals of one phase.
#[derive(Debug)]
pub struct Queue {
    lookout: Lookout,
    /// Of `--events`: later arrivals are never due.
    most: u64,
    begun_before: u64,
    arrived: Arrived,
}

impl Queue {
    /// From the phase's begin on, when nothing runs.
    pub fn new(lookout: Lookout, events: Option<u64>, workers: &[Worker]) -> Self {
        Self {
            lookout,
            most: events.unwrap_or(u64::MAX),
            begun_before: workers.iter().map(Worker::begun).sum(),
            arrived: Arrived::default(),
        }
    }

    /// How it is now.
    pub fn look(&mut self, workers: &[Worker], now_ns: i64) -> Backlog {
        // In this order, so that neither difference can be negative for a thread that goes on meanwhile.
        let ended: u64 = workers.iter().map(Worker::ended).sum();
        let begun: u64 = workers.iter().map(Worker::begun).sum();
        let due = self.lookout.due_by(now_ns).min(self.most);
        self.arrived.due = due;
        self.arrived.begun = begun - self.begun_before;
        let waiting = self.arrived.left();
        self.arrived.most_waiting = self.arrived.most_waiting.max(waiting);
        Backlog {
            waiting,
            running: begun.saturating_sub(ended),
        }
    }

    /// What has become of them by the last look.
    pub fn arrived(&self) -> Arrived {
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_when_hardly_anything_waits_at_the_end() {
        let arrived = |due, begun| Arrived {
            due,
            begun,
            most_waiting: due,
        };
        assert!(arrived(100_000, 99_000).held() && !arrived(100_000, 98_999).held());
        assert!(arrived(50, 40).held() && !arrived(50, 39).held());
    }
}
