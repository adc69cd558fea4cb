//! Computes the due times of ticks on CLOCK_MONOTONIC. Missed ticks are counted and never caught
//! up.

use loadprint_recording::journal::Stamp;

/// Due times `start + n × interval`.
#[derive(Debug)]
pub struct Schedule {
    start_ns: i64,
    interval_ns: i64,
    next: u32,
}

impl Schedule {
    /// A schedule whose first tick is due at `start_ns`.
    pub fn new(start_ns: i64, interval_ns: i64) -> Self {
        Self {
            start_ns,
            interval_ns,
            next: 0,
        }
    }

    /// The next tick to take at `now_ns`, not started yet; ticks that are a whole interval late are missed.
    pub fn next(&mut self, now_ns: i64) -> Stamp {
        let due_ns = self.due(self.next);
        let late = (now_ns - due_ns).max(0) / self.interval_ns;
        let missed = u32::try_from(late).unwrap_or(u32::MAX - self.next);
        let tick = self.next.saturating_add(missed);
        self.next = tick.saturating_add(1);
        Stamp {
            tick,
            intended_ns: self.due(tick),
            missed,
            ..Stamp::default()
        }
    }

    fn due(&self, tick: u32) -> i64 {
        self.start_ns
            .saturating_add(i64::from(tick).saturating_mul(self.interval_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_counted_and_late_ones_do_not_drift() {
        let mut schedule = Schedule::new(1000, 10);
        // At 1029 the tick of 1020 is 9 ns late, less than an interval. At 1057 those of 1030 and
        // 1040 are missed.
        for (now_ns, tick, missed) in [
            (900, 0, 0),
            (1009, 1, 0),
            (1029, 2, 0),
            (1057, 5, 2),
            (1057, 6, 0),
        ] {
            let intended_ns = 1000 + 10 * i64::from(tick);
            let due = schedule.next(now_ns);
            assert_eq!(
                (due.tick, due.intended_ns, due.missed),
                (tick, intended_ns, missed)
            );
        }
    }
}
