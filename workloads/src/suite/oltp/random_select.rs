//! The scripts select_random_points and select_random_ranges: one statement with many parameters;
//! each thread reads its slice of `sbtest1`.

use anyhow::Result;

use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Keys;
use crate::random::Rng;

/// One of the two scripts with its options.
#[derive(Debug)]
pub struct RandomSelect {
    sql: String,
    draws: usize,
    /// Distance to the end of each range; none for points.
    delta: Option<i64>,
    table_size: i64,
    distribution: Distribution,
    /// Of all parts.
    threads: usize,
    seed: u64,
}

impl RandomSelect {
    /// SELECT … WHERE k IN (…).
    pub fn points(distribution: Distribution, values: &Values, threads: usize, seed: u64) -> Result<Self> {
        let draws = values.count("random-points")?;
        let list = vec!["?"; draws].join(", ");
        Ok(Self {
            // With the spaces of the script, so that the same bytes are sent.
            sql: format!(
                "        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({list})\n        "
            ),
            draws,
            delta: None,
            table_size: values.int("table-size")?,
            distribution,
            threads,
            seed,
        })
    }

    /// SELECT … WHERE k BETWEEN … OR ….
    pub fn ranges(distribution: Distribution, values: &Values, threads: usize, seed: u64) -> Result<Self> {
        let draws = values.count("number-of-ranges")?;
        let list = vec!["k BETWEEN ? AND ?"; draws].join(" OR ");
        Ok(Self {
            sql: format!("        SELECT count(k)\n          FROM sbtest1\n          WHERE {list}"),
            draws,
            delta: Some(values.int("delta")?),
            table_size: values.int("table-size")?,
            distribution,
            threads,
            seed,
        })
    }

    /// The keys of a thread, as in sysbench: `size ÷ threads × thread` to one slice further, both
    /// included; they start at 0.
    fn slice(&self, thread: usize) -> Keys {
        let width = self.table_size as f64 / self.threads as f64;
        let least = width * thread as f64;
        self.distribution.over(least as i64, (least + width) as i64)
    }
}

impl Load for RandomSelect {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let params = self.draws * (1 + usize::from(self.delta.is_some()));
        Ok(Box::new(SelectSession {
            statement: client.prepare(&self.sql, &vec![ParamType::Int; params])?,
            values: vec![Value::Null; params].into(),
            delta: self.delta,
            keys: self.slice(thread),
            rng: Rng::new(self.seed, thread as u64),
        }))
    }

    fn handles(&self) -> usize {
        1
    }
}

struct SelectSession {
    statement: StatementId,
    values: Box<[Value<'static>]>,
    delta: Option<i64>,
    keys: Keys,
    rng: Rng,
}

impl Session for SelectSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        match self.delta {
            None => {
                for value in &mut self.values {
                    *value = Value::Int(self.keys.draw(&mut self.rng));
                }
            }
            Some(delta) => {
                for range in self.values.chunks_exact_mut(2) {
                    let k = self.keys.draw(&mut self.rng);
                    range[0] = Value::Int(k);
                    range[1] = Value::Int((k + delta).min(i64::from(i32::MAX)));
                }
            }
        }
        client.execute(self.statement, &self.values)?;
        Ok(Step::Done(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::OPTIONS;
    use crate::suite::oltp::options::POINTS;
    use crate::suite::sbtest::TABLES;

    #[test]
    fn the_slices_of_the_threads_cover_the_table() {
        let values = Values::defaults(
            &[TABLES, POINTS, OPTIONS],
            &[("table-size", "1000"), ("rand-type", "uniform")],
        );
        let distribution = Distribution::from_options(&values).unwrap();
        let load = RandomSelect::points(distribution, &values, 3, 1).unwrap();
        let mut rng = Rng::new(2, 0);
        for (thread, ends) in [(0, (0, 333)), (1, (333, 666)), (2, (666, 1000))] {
            let keys = load.slice(thread);
            let drawn: Vec<i64> = (0..20_000).map(|_| keys.draw(&mut rng)).collect();
            assert_eq!((*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap()), ends);
        }
    }
}
