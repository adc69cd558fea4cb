//! Runs one step: assigns a role to each connection and reports whether the requested insert rate
//! was held.

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
    /// A step with this number of clients.
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
        // Statements of two sizes and one for the smallest id, or three range queries.
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
        let mut add = |name: &str, value: Json| drop(details.insert(name.to_owned(), value));
        add("step", json!(step.name()));
        add("clients", json!(shared.clients));
        add("connections_per_client", json!(step.connections()));
        add("connections", json!(self.connections(shared.clients)));
        add("tables", json!(shared.tables.len()));
        if step == Step::Settle {
            let (dirty, wait) = self.settling.results();
            add("settle_wait_seconds", json!(wait));
            add("dirty_pages_before", json!(dirty[0]));
            add("dirty_pages_after", json!(dirty[1]));
            return details;
        }
        add("rows_per_commit", json!(step.rows_per_commit()));
        add("rows_inserted", json!(inserted));
        add("rows_deleted", json!(deleted));
        add("inserts_per_second", json!(per_second(inserted)));
        add("deletes_per_second", json!(per_second(deleted)));
        if let Step::Query { rate, .. } = step {
            let target = (rate * shared.clients as u64) as f64;
            let share = per_second(inserted) / target;
            // A statement that is due when the step ends is not counted as late.
            let allowed = step.rows_per_commit() * shared.clients as u64;
            let held = share >= self.promise
                || (inserted + allowed) as f64 >= self.promise * target * seconds && inserted > allowed;
            add("insert_rate_target", json!(target));
            add("insert_rate_share", json!(share));
            add("rate_promise", json!(self.promise));
            add("promise_held", json!(held));
            if !held {
                let message = format!(
                    "NOT HELD: {:.1} of {target} rows per second inserted ({:.1} %); do not compare the queries of {}",
                    per_second(inserted),
                    100.0 * share,
                    step.name()
                );
                add("promise", json!(message));
            }
        }
        details
    }
}
