//! The steps of the benchmark: names, operations, rows per statement and connections per client.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::options::Values;

/// Rows that l.x inserts before it creates the indexes.
pub const ROWS_BEFORE_INDEXES: u64 = 100;

/// The kind of the queries of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queries {
    /// Range of one of the three secondary indexes, which covers the query.
    Range,
    /// Ten rows by primary key.
    Point,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// l.i0: inserts in the order of the primary key, without other indexes.
    Load,
    /// l.x: creates the three secondary indexes.
    Index,
    /// l.i1 and l.i2: inserts and the same number of deletes, with all indexes.
    Churn {
        /// 1 or 2.
        number: u64,
    },
    /// settle: computes statistics and writes dirty pages back.
    Settle,
    /// qr… and qp…: queries during inserts and deletes at a promised rate.
    Query {
        /// Their kind.
        queries: Queries,
        /// Rows inserted, and rows deleted, per second and client.
        rate: u64,
    },
}

impl Step {
    /// Parses `l.i0`, `l.x`, `l.i1`, `l.i2`, `settle`, `qr100`, `qp100`, …
    pub fn parse(word: &str) -> Result<Self> {
        let query = |queries, rate: &str| {
            let rate = rate.parse().ok().filter(|rate| (1..=1_000_000).contains(rate));
            rate.map(|rate| Self::Query { queries, rate })
        };
        let step = match word {
            "l.i0" => Some(Self::Load),
            "l.x" => Some(Self::Index),
            "l.i1" => Some(Self::Churn { number: 1 }),
            "l.i2" => Some(Self::Churn { number: 2 }),
            "settle" => Some(Self::Settle),
            _ => match (word.strip_prefix("qr"), word.strip_prefix("qp")) {
                (Some(rate), _) => query(Queries::Range, rate),
                (_, Some(rate)) => query(Queries::Point, rate),
                _ => None,
            },
        };
        step.with_context(|| {
            format!(
                "`{word}` is not a step: give l.i0, l.x, l.i1, l.i2, settle, or qrN and qpN with N rows per second"
            )
        })
    }

    /// The steps of `--steps`, each once.
    pub fn list(values: &Values) -> Result<Vec<Self>> {
        let text = values.text("steps")?.unwrap_or_default();
        let mut steps = Vec::new();
        for word in text.split(',').map(str::trim) {
            let step = Self::parse(word).with_context(|| format!("--steps={text}"))?;
            if steps.contains(&step) {
                bail!("--steps={text}: {word} is given twice");
            }
            steps.push(step);
        }
        Ok(steps)
    }

    /// As on the command line.
    pub fn name(self) -> String {
        match self {
            Self::Load => "l.i0".to_owned(),
            Self::Index => "l.x".to_owned(),
            Self::Churn { number } => format!("l.i{number}"),
            Self::Settle => "settle".to_owned(),
            Self::Query { queries, rate } => match queries {
                Queries::Range => format!("qr{rate}"),
                Queries::Point => format!("qp{rate}"),
            },
        }
    }

    /// The operation that one event counts as.
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Load | Self::Churn { .. } => "insert benchmark row (inserted)",
            Self::Index => "insert benchmark row (in three new indexes)",
            Self::Settle => "none (insert benchmark settles)",
            Self::Query {
                queries: Queries::Range,
                ..
            } => "insert benchmark range query (next to inserts and deletes)",
            Self::Query {
                queries: Queries::Point,
                ..
            } => "insert benchmark point query (next to inserts and deletes)",
        }
    }

    /// Connections per client: separate ones for inserts, deletes and queries.
    pub const fn connections(self) -> usize {
        match self {
            Self::Load | Self::Index | Self::Settle => 1,
            Self::Churn { .. } => 2,
            Self::Query { .. } => 3,
        }
    }

    /// Rows of one INSERT or DELETE; at most those of one second.
    pub fn rows_per_commit(self) -> u64 {
        match self {
            Self::Load | Self::Index | Self::Settle => 100,
            Self::Churn { number: 1 } => 50,
            Self::Churn { .. } => 5,
            Self::Query { rate, .. } => rate.min(50),
        }
    }

    /// Rows that one client inserts; none for steps with a time limit.
    pub fn rows(self, values: &Values) -> Result<Option<u64>> {
        let of = |option: &str| anyhow::Ok(Some(u64::try_from(values.int(option)?)?));
        match self {
            Self::Load => of("rows-i0"),
            Self::Churn { number: 1 } => of("rows-i1"),
            Self::Churn { .. } => of("rows-i2"),
            Self::Index => Ok(Some(ROWS_BEFORE_INDEXES)),
            Self::Settle => Ok(Some(0)),
            Self::Query { .. } => Ok(None),
        }
    }

    /// Number of the random stream of a step.
    pub const fn stream(self) -> u64 {
        match self {
            Self::Load => 1,
            Self::Index => 2,
            Self::Churn { number } => 2 + number,
            Self::Settle => 5,
            Self::Query {
                queries: Queries::Range,
                rate,
            } => 8 + 2 * rate,
            Self::Query { rate, .. } => 9 + 2 * rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_parses_to_its_step() {
        for name in [
            "l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp100", "qr500", "qp1000",
        ] {
            assert_eq!(Step::parse(name).unwrap().name(), name);
        }
        for word in ["l.i3", "qr", "qp0", "qr-1", "q100", ""] {
            assert!(Step::parse(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_slow_rate_makes_smaller_statements() {
        assert_eq!(Step::parse("qr100").unwrap().rows_per_commit(), 50);
        assert_eq!(Step::parse("qr20").unwrap().rows_per_commit(), 20);
    }
}
