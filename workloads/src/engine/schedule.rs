//! Generates the arrival times of an open loop. The time of arrival n depends only on the seed.
//! Threads take the next arrival in turn, and a cursor over the same sequence counts the arrivals
//! that are due. Times are computed on demand: a backlog takes no memory.

use std::sync::Mutex;

use serde::Deserialize;
use serde::Serialize;

use crate::lock::lock;
use crate::random::Rng;

/// Distribution of the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent: exponential intervals.
    Poisson,
    /// Equal intervals.
    Constant,
}

/// Separates the random streams of arrivals from those of threads; one for each phase.
const STREAM: u64 = 1 << 34;
/// Of an event that is due in thirty years or more.
const NEVER_NS: f64 = 1e18;

/// An endless sequence of times, nanoseconds since the start of the phase.
#[derive(Debug, Clone)]
struct ArrivalTimes {
    rng: Rng,
    arrivals: Arrivals,
    gap_ns: f64,
    number: u64,
    at_ns: f64,
}

impl ArrivalTimes {
    fn new(rate: &Rate, phase: u64) -> Self {
        let gap_ns = 1e9 / rate.per_second;
        Self {
            rng: Rng::new(rate.seed, STREAM + phase),
            arrivals: rate.arrivals,
            gap_ns,
            number: 0,
            at_ns: 0.0,
        }
    }

    fn next(&mut self) -> i64 {
        match self.arrivals {
            Arrivals::Constant => self.at_ns = self.number as f64 * self.gap_ns,
            // 1 − u is in (0, 1]: the logarithm is finite.
            Arrivals::Poisson => self.at_ns -= (1.0 - self.rng.unit()).ln() * self.gap_ns,
        }
        self.number += 1;
        self.at_ns.min(NEVER_NS) as i64
    }
}

/// Rate and distribution of the arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Arrivals per second, all threads together; greater than zero.
    pub per_second: f64,
    /// Distribution.
    pub arrivals: Arrivals,
    /// The same seed gives the same times.
    pub seed: u64,
}

#[derive(Debug)]
struct State {
    times: ArrivalTimes,
    begin_ns: i64,
    phase: u64,
}

/// The arrivals of a phase.
#[derive(Debug)]
pub struct Schedule {
    rate: Rate,
    state: Mutex<State>,
}

impl Schedule {
    /// [`Schedule::begin`] must be called before the first arrival.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            state: Mutex::new(State {
                times: ArrivalTimes::new(&rate, 0),
                begin_ns: 0,
                phase: 0,
            }),
        }
    }

    /// Starts a phase at this time of CLOCK_MONOTONIC, with other arrivals than the phase before;
    /// returns a cursor over them.
    pub fn begin(&self, begin_ns: i64) -> ArrivalCursor {
        let mut state = lock(&self.state);
        state.phase += 1;
        state.begin_ns = begin_ns;
        state.times = ArrivalTimes::new(&self.rate, state.phase);
        let mut times = state.times.clone();
        let next_ns = begin_ns + times.next();
        ArrivalCursor {
            times,
            begin_ns,
            next_ns,
            due: 0,
        }
    }

    /// Takes the next arrival; returns its time on CLOCK_MONOTONIC without pauses, which is in the
    /// past if there is a backlog.
    pub fn take(&self) -> i64 {
        let mut state = lock(&self.state);
        state.begin_ns + state.times.next()
    }
}

/// Counts the arrivals of a phase as they become due.
#[derive(Debug)]
pub struct ArrivalCursor {
    times: ArrivalTimes,
    begin_ns: i64,
    next_ns: i64,
    due: u64,
}

impl ArrivalCursor {
    /// Number of arrivals due by this time of CLOCK_MONOTONIC, which must not decrease.
    pub fn due_by(&mut self, now_ns: i64) -> u64 {
        while self.next_ns <= now_ns {
            self.due += 1;
            self.next_ns = self.begin_ns + self.times.next();
        }
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of 1000 arrivals a second.
    fn times(arrivals: Arrivals, seed: u64, count: usize) -> Vec<i64> {
        let schedule = Schedule::new(Rate {
            per_second: 1000.0,
            arrivals,
            seed,
        });
        schedule.begin(5);
        (0..count).map(|_| schedule.take() - 5).collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let times = times(Arrivals::Constant, 1, 1_000_001);
        assert_eq!(
            (times[0], times[1], times[1_000_000]),
            (0, 1_000_000, 1_000_000_000_000)
        );
    }

    #[test]
    fn an_event_of_the_far_future_is_not_due() {
        let schedule = Schedule::new(Rate {
            per_second: 1e-12,
            arrivals: Arrivals::Poisson,
            seed: 1,
        });
        schedule.begin(5);
        assert!(schedule.take() > 5);
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps_and_are_those_of_the_seed() {
        let count = 200_000;
        let times_of = |seed| times(Arrivals::Poisson, seed, count);
        let times = times_of(7);
        assert_eq!(times, times_of(7));
        assert_ne!(times, times_of(8));
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / 1e6)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let above = |gap: f64| gaps.iter().filter(|one| **one > gap).count() as f64 / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        for gap in [0.1f64, 1.0, 3.0] {
            assert!((above(gap) - (-gap).exp()).abs() < 0.005, "{gap}: {}", above(gap));
        }
    }

    #[test]
    fn the_cursor_counts_due_arrivals() {
        let rate = Rate {
            per_second: 1e6,
            arrivals: Arrivals::Poisson,
            seed: 3,
        };
        let schedule = Schedule::new(rate);
        let mut cursor = schedule.begin(100);
        let taken: Vec<i64> = (0..1000).map(|_| schedule.take()).collect();
        for now in [99, taken[0], taken[500], taken[999]] {
            let due = taken.iter().filter(|time| **time <= now).count() as u64;
            assert_eq!(cursor.due_by(now), due);
        }
        let mut warm = schedule.begin(100);
        assert_ne!(warm.next_ns, taken[0], "each phase has its own arrivals");
        assert_eq!(warm.due_by(0), 0);
    }
}
