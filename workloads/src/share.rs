//! Divides a load among *parts*: processes on several hosts that run it together, as one generator
//! with all their threads would. Threads are numbered across all parts.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::Value as Json;
use serde_json::json;

use crate::options::Values;

/// The largest number of parts: `--threads` has no more threads.
const MOST: usize = 10_000;

/// One of the parts, as in `--part=2/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: usize,
    /// Number of parts.
    pub of: usize,
}

impl Part {
    /// `--part`, if given.
    ///
    /// # Errors
    /// If the value is not `K/N` with K from 1 to N.
    pub fn from_options(values: &Values) -> Result<Option<Self>> {
        let text = values.text("part")?;
        text.map(|text| {
            Self::parse(text).with_context(|| {
                format!("--part={text} is not K/N with whole numbers, 1 <= K <= N <= {MOST}")
            })
        })
        .transpose()
    }

    /// As in `result.json`.
    pub fn to_json(self) -> Json {
        json!({"number": self.number, "of": self.of})
    }

    fn parse(text: &str) -> Option<Self> {
        // Only digits: `parse` also accepts a sign.
        let number = |word: &str| -> Option<usize> {
            let digits = word.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| word.parse().ok()).flatten()
        };
        let (part, of) = text.split_once('/')?;
        let part = Self {
            number: number(part)?,
            of: number(of)?,
        };
        ((1..=part.of).contains(&part.number) && part.of <= MOST).then_some(part)
    }
}

/// The threads of this process among the threads of all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of its first thread, from 0.
    pub first: usize,
    /// Its number of threads.
    pub threads: usize,
    /// Threads of all parts.
    pub all: usize,
}

impl Share {
    /// All threads, without other parts.
    pub const fn whole(threads: usize) -> Self {
        Self {
            first: 0,
            threads,
            all: threads,
        }
    }

    /// The share of a part, which may be empty.
    pub const fn of(part: Part, all: usize) -> Self {
        let first = (part.number - 1) * all / part.of;
        Self {
            first,
            threads: part.number * all / part.of - first,
            all,
        }
    }

    /// The share by `--threads` and `--part`.
    ///
    /// # Errors
    /// If the part is invalid or has no thread.
    pub fn from_options(values: &Values) -> Result<Self> {
        let all = values.count("threads")?;
        let Some(part) = Part::from_options(values)? else {
            return Ok(Self::whole(all));
        };
        let share = Self::of(part, all);
        if share.threads == 0 {
            let Part { number, of } = part;
            bail!("--part={number}/{of} has none of --threads={all}: give at least one thread for each part");
        }
        Ok(share)
    }

    /// Its share of a number that all parts divide, in proportion to the threads; the shares of all
    /// parts add up to `total`.
    pub fn divide(self, total: u64) -> u64 {
        let up_to = |thread: usize| u128::from(total) * thread as u128 / self.all as u128;
        // Not larger than `total`.
        (up_to(self.first + self.threads) - up_to(self.first)) as u64
    }

    /// Its share of a rate.
    pub fn divide_rate(self, total: f64) -> f64 {
        total * self.threads as f64 / self.all as f64
    }

    /// The position of its first thread among all threads, from 0 to below 1.
    pub fn position(self) -> f64 {
        self.first as f64 / self.all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::COMMON;

    fn shares(all: usize, of: usize) -> Vec<Share> {
        (1..=of)
            .map(|number| Share::of(Part { number, of }, all))
            .collect()
    }

    #[test]
    fn the_parts_have_every_thread_once_and_differ_by_one_at_most() {
        for (all, of) in (1..=20).flat_map(|all| (1..=20).map(move |of| (all, of))) {
            let shares = shares(all, of);
            let numbers: Vec<usize> = shares
                .iter()
                .flat_map(|share| share.first..share.first + share.threads)
                .collect();
            assert_eq!(
                numbers,
                (0..all).collect::<Vec<_>>(),
                "{all} threads in {of} parts"
            );
            assert!(
                shares
                    .iter()
                    .all(|share| share.threads >= all / of && share.threads <= all.div_ceil(of)),
                "{shares:?}"
            );
        }
    }

    #[test]
    fn events_and_rate_are_divided_without_a_rest_in_proportion_to_the_threads() {
        for (all, of) in (1..=20).flat_map(|all| (1..=20).map(move |of| (all, of))) {
            let shares = shares(all, of);
            for total in [0, 1, 7, 1000, 12_345_678_901, u64::MAX] {
                let sum: u64 = shares.iter().map(|share| share.divide(total)).sum();
                assert_eq!(sum, total, "{all} threads in {of} parts");
                let exact = |share: &Share| u128::from(total) * share.threads as u128 / all as u128;
                assert!(
                    shares
                        .iter()
                        .all(|share| u128::from(share.divide(total)).abs_diff(exact(share)) <= 1)
                );
            }
            let rate: f64 = shares.iter().map(|share| share.divide_rate(333.3)).sum();
            assert!((rate - 333.3).abs() < 1e-9, "{rate}");
            for share in &shares {
                let per_thread = share.divide_rate(333.3) * all as f64;
                assert!((per_thread - 333.3 * share.threads as f64).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_part_without_a_thread_and_values_of_another_form_are_refused() {
        let share = |part: &str, threads: &str| {
            Share::from_options(&Values::defaults(
                &[COMMON],
                &[("part", part), ("threads", threads)],
            ))
        };
        assert_eq!(
            share("2/3", "8").unwrap(),
            Share {
                first: 2,
                threads: 3,
                all: 8
            }
        );
        assert_eq!(share("1/1", "8").unwrap(), Share::whole(8));
        let line = share("1/3", "2").unwrap_err().to_string();
        assert!(line.starts_with("--part=1/3 has none of --threads=2"), "{line}");
        for part in [
            "",
            "/",
            "1",
            "1/",
            "/2",
            "0/2",
            "3/2",
            "1/0",
            "0/0",
            "-1/2",
            "+1/2",
            "1/2/3",
            "1 / 2",
            "1.0/2",
            "1/10001",
            "99999999999999999999/2",
            "1/99999999999999999999",
            "a/b",
            "１/２",
        ] {
            let line = share(part, "10000").unwrap_err().to_string();
            assert!(line.starts_with(&format!("--part={part} is not K/N")), "{line}");
        }
    }
}
