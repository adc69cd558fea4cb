//! Samples the backlog of an open loop ten times a second: arrivals that are due and not started.

use super::Worker;
use super::schedule::ArrivalCursor;

/// The backlog at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Due and not started; sysbench's queue length.
    pub waiting: u64,
    /// Started and not ended; sysbench's concurrency.
    pub running: u64,
}

/// Arrivals of `measure`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Due before the time was over.
    pub due: u64,
    /// Started.
    pub started: u64,
    /// Largest number that waited in a sample.
    pub max_waiting: u64,
}

impl ArrivalCounts {
    /// Arrivals that waited when the time was over; they are never run.
    pub fn left(&self) -> u64 {
        self.due.saturating_sub(self.started)
    }

    /// True if the server kept up: at the end at most 1 % of the arrivals waited, or ten.
    pub fn rate_held(&self) -> bool {
        self.left() <= (self.due / 100).max(10)
    }
}

/// Samples the backlog of one phase.
#[derive(Debug)]
pub struct BacklogMonitor {
    cursor: ArrivalCursor,
    /// Limit by `--events`: later arrivals are never due.
    max_events: u64,
    started_before: u64,
    arrived: ArrivalCounts,
}

impl BacklogMonitor {
    /// Starts at the beginning of a phase, while no event runs.
    pub fn new(cursor: ArrivalCursor, events: Option<u64>, workers: &[Worker]) -> Self {
        Self {
            cursor,
            max_events: events.unwrap_or(u64::MAX),
            started_before: workers.iter().map(Worker::started).sum(),
            arrived: ArrivalCounts::default(),
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, workers: &[Worker], now_ns: i64) -> Backlog {
        // In this order, so that no difference is negative while a thread continues.
        let ended: u64 = workers.iter().map(Worker::ended).sum();
        let started: u64 = workers.iter().map(Worker::started).sum();
        let due = self.cursor.due_by(now_ns).min(self.max_events);
        self.arrived.due = due;
        self.arrived.started = started - self.started_before;
        let waiting = self.arrived.left();
        self.arrived.max_waiting = self.arrived.max_waiting.max(waiting);
        Backlog {
            waiting,
            running: started.saturating_sub(ended),
        }
    }

    /// The arrivals by the last sample.
    pub fn arrived(&self) -> ArrivalCounts {
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_when_at_most_one_percent_waits() {
        let arrived = |due, started| ArrivalCounts {
            due,
            started,
            max_waiting: due,
        };
        assert!(arrived(100_000, 99_000).rate_held() && !arrived(100_000, 98_999).rate_held());
        assert!(arrived(50, 40).rate_held() && !arrived(50, 39).rate_held());
    }
}
