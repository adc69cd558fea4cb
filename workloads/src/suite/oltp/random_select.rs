//! The scripts select_random_points and select_random_ranges: one statement with many parameters;
//! each thread reads its slice of `sbtest1`.

use anyhow::Result;

use super::scripts::Points;
use super::scripts::Ranges;
use super::sessions;
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
use crate::suite::sbtest::Tables;

/// SELECT … WHERE k IN (…); with `ranges` SELECT … WHERE k BETWEEN … OR ….
pub fn load(
    ranges: bool,
    distribution: Distribution,
    values: &Values,
    threads: usize,
    seed: u64,
) -> Result<Box<dyn Load>> {
    // With the spaces of the scripts, so that the same bytes are sent.
    let (sql, params, delta) = if ranges {
        let Ranges {
            number_of_ranges: draws,
            delta,
        } = values.read()?;
        let list = vec!["k BETWEEN ? AND ?"; draws].join(" OR ");
        let sql = format!("        SELECT count(k)\n          FROM sbtest1\n          WHERE {list}");
        (sql, 2 * draws, Some(delta))
    } else {
        let Points { random_points: draws } = values.read()?;
        let list = vec!["?"; draws].join(", ");
        let sql = format!(
            "        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({list})\n        "
        );
        (sql, draws, None)
    };
    let size = values.read::<Tables>()?.table_size;
    Ok(sessions(1, move |thread, client| {
        Ok(Box::new(SelectSession {
            statement: client.prepare(&sql, &vec![ParamType::Int; params])?,
            values: vec![Value::Null; params].into(),
            delta,
            keys: slice(distribution, size, threads, thread),
            rng: Rng::new(seed, thread as u64),
        }))
    }))
}

/// The keys of a thread, as in sysbench: `size ÷ threads × thread` to one slice further, both
/// included; they start at 0.
fn slice(distribution: Distribution, size: i64, threads: usize, thread: usize) -> Keys {
    let width = size as f64 / threads as f64;
    let least = width * thread as f64;
    distribution.over(least as i64, (least + width) as i64)
}

struct SelectSession {
    statement: StatementId,
    values: Box<[Value<'static>]>,
    /// Distance to the end of each range; none for points.
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

    #[test]
    fn the_slices_of_the_threads_cover_the_table() {
        let mut rng = Rng::new(2, 0);
        for (thread, ends) in [(0, (0, 333)), (1, (333, 666)), (2, (666, 1000))] {
            let keys = slice(Distribution::uniform(), 1000, 3, thread);
            let drawn: Vec<i64> = (0..20_000).map(|_| keys.draw(&mut rng)).collect();
            assert_eq!((*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap()), ends);
        }
    }
}
