//! The due times of statements in a step with a promised rate: at equal intervals from the start of
//! the phase.

use loadprint_recording::clock::monotonic_ns;

/// The schedule of one connection.
#[derive(Debug)]
pub struct Schedule {
    period_ns: i64,
    /// Spreads the first statements of the clients over a period.
    offset_ns: i64,
    phase: u64,
    next_ns: i64,
}

impl Schedule {
    /// `rows` per statement, `rate` rows per second; client `client` of `clients` starts that
    /// fraction of a period later.
    pub fn new(rows: u64, rate: u64, client: usize, clients: usize) -> Self {
        let period_ns = (rows as f64 / rate as f64 * 1e9) as i64;
        Self {
            period_ns,
            offset_ns: period_ns * client as i64 / clients.max(1) as i64,
            phase: 0,
            next_ns: 0,
        }
    }

    /// Due time of the next statement on CLOCK_MONOTONIC; `phase` is the number of the phase in the
    /// run.
    pub fn due(&mut self, phase: u64) -> i64 {
        if self.phase != phase {
            self.phase = phase;
            self.next_ns = monotonic_ns() + self.offset_ns;
        }
        self.next_ns
    }

    /// Moves to the next statement.
    pub fn advance(&mut self) {
        self.next_ns += self.period_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_statement_does_not_move_the_later_ones() {
        let mut schedule = Schedule::new(50, 100, 1, 2);
        let first = schedule.due(1);
        schedule.advance();
        assert_eq!(schedule.due(1) - first, 500_000_000);
        assert_eq!(schedule.offset_ns, 250_000_000);
        let before = monotonic_ns();
        assert!(
            schedule.due(2) >= before + 250_000_000,
            "a new phase restarts the schedule"
        );
    }
}
