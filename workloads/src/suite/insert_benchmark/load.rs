//! One step as a load: which connection does what, and whether the promised insert rate was held.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use super::reader::Reader;
use super::settle::Settler;
use super::settle::Settling;
use super::shared::Shared;
use super::step::Step;
use super::table;
use super::writers::Deleter;
use super::writers::Indexer;
use super::writers::Inserter;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Moment;
use crate::engine::load::Session;
use crate::options::Values;

/// One step with its options.
pub struct StepLoad {
    shared: Arc<Shared>,
    settling: Arc<Settling>,
    settle_seconds: f64,
    promise: f64,
}

impl StepLoad {
    /// For so many clients.
    ///
    /// # Errors
    /// Of the options.
    pub fn new(values: &Values, step: Step, clients: usize, seed: u64) -> Result<Self> {
        let tables = table::names(values, clients)?;
        let rows = step.rows(values)?;
        Ok(Self {
            shared: Arc::new(Shared::new(step, clients, tables, rows, seed)),
            settling: Arc::new(Settling::default()),
            settle_seconds: values.number("settle-time")?,
            promise: values.number("rate-promise")?,
        })
    }
}

impl Load for StepLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let shared = Arc::clone(&self.shared);
        let each = shared.step.connections();
        let (number, role) = (thread / each, thread % each);
        Ok(match (shared.step, role) {
            (Step::Settle, _) => Box::new(Settler::open(
                shared,
                Arc::clone(&self.settling),
                self.settle_seconds,
                client,
            )?),
            (Step::Index, _) => Box::new(Indexer::open(shared, number, client)?),
            (_, 0) => Box::new(Inserter::open(shared, number, client)?),
            (Step::Query { queries, .. }, 2) => Box::new(Reader::open(shared, number, queries, client)?),
            _ => Box::new(Deleter::open(shared, number, client)?),
        })
    }

    fn operation(&self) -> Option<&'static str> {
        Some(self.shared.step.operation())
    }

    fn connections(&self, threads: usize) -> usize {
        match self.shared.step {
            Step::Settle => 1,
            // One ALTER per table.
            Step::Index => self.shared.tables.len(),
            step => step.connections() * threads,
        }
    }

    fn handles(&self) -> usize {
        // Two sizes and the smallest id, or three range queries.
        3
    }

    fn drains(&self) -> bool {
        !matches!(self.shared.step, Step::Query { .. })
    }

    fn begin(&self, _events: Option<u64>) {
        let shared = &self.shared;
        shared.phase.fetch_add(1, Relaxed);
        shared.inserted.store(0, Relaxed);
        shared.deleted.store(0, Relaxed);
        shared.pairs.iter().for_each(|pair| pair.begin());
    }

    fn stop(&self) {
        self.shared.pairs.iter().for_each(|pair| pair.end());
    }

    fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        match self.shared.step {
            Step::Settle => self.settling.at_rest(moment, connection),
            _ => Ok(()),
        }
    }

    fn details(&self, seconds: f64) -> Map<String, Json> {
        let shared = &self.shared;
        let step = shared.step;
        let (inserted, deleted) = (shared.inserted.load(Relaxed), shared.deleted.load(Relaxed));
        let per_second = |rows: u64| if seconds > 0.0 { rows as f64 / seconds } else { 0.0 };
        let mut details = Map::new();
        let mut tell = |name: &str, value: Json| drop(details.insert(name.to_owned(), value));
        tell("step", json!(step.name()));
        tell("clients", json!(shared.clients));
        tell("connections_per_client", json!(step.connections()));
        tell("connections", json!(self.connections(shared.clients)));
        tell("tables", json!(shared.tables.len()));
        if step == Step::Settle {
            let (dirty, wait) = self.settling.told();
            tell("settle_wait_seconds", json!(wait));
            tell("dirty_pages_before", json!(dirty[0]));
            tell("dirty_pages_after", json!(dirty[1]));
            return details;
        }
        tell("rows_per_commit", json!(step.rows_per_commit()));
        tell("rows_inserted", json!(inserted));
        tell("rows_deleted", json!(deleted));
        tell("inserts_per_second", json!(per_second(inserted)));
        tell("deletes_per_second", json!(per_second(deleted)));
        if let Step::Query { rate, .. } = step {
            let target = (rate * shared.clients as u64) as f64;
            let share = per_second(inserted) / target;
            // A statement that is due as the step ends is nobody's fault.
            let granted = step.rows_per_commit() * shared.clients as u64;
            let held = share >= self.promise
                || (inserted + granted) as f64 >= self.promise * target * seconds && inserted > granted;
            tell("insert_rate_target", json!(target));
            tell("insert_rate_share", json!(share));
            tell("rate_promise", json!(self.promise));
            tell("promise_held", json!(held));
            if !held {
                let said = format!(
                    "NOT HELD: {:.1} of {target} rows per second inserted ({:.1} %): do not rank the queries of {}",
                    per_second(inserted),
                    100.0 * share,
                    step.name()
                );
                tell("promise", json!(said));
            }
        }
        details
    }
}
