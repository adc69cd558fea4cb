//! The workload with its options fixed: what its writers share, and the facts it tells at the end.

use std::sync::Arc;

use anyhow::Result;
use anyhow::bail;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use super::mix::Mix;
use super::queue::Queue;
use super::record::Full;
use super::record::Source;
use super::shared::Mode;
use super::shared::Shared;
use super::statements::handles;
use super::tally::Sums;
use super::tally::Tally;
use super::writer::Writer;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Moment;
use crate::engine::load::Session;
use crate::options::Values;
use crate::random::Rng;

/// The buffers of the published study.
const STUDY_BUFFERS: usize = 1024;
/// Keeps the producer's stream apart from those of threads.
const PRODUCER_STREAM: u64 = 1 << 33;
/// Writers that wait for a longer part of their time are not the limit.
const IDLE_SHARE: f64 = 0.05;

/// The load.
pub struct ArmLoad {
    threads: usize,
    full: Full,
    buffers: usize,
    verify: bool,
    shared: Arc<Shared>,
}

impl ArmLoad {
    /// By the options.
    ///
    /// # Errors
    /// Of the options.
    pub fn new(values: &Values, threads: usize, seed: u64) -> Result<Self> {
        let mix = Mix::of(values)?;
        for option in ["parent", "metrics", "contexts"] {
            if values.given(option)? && !mix.scenarios().any(|scenario| scenario.name == "custom") {
                bail!("--{option} belongs to the scenario custom: add --scenario=custom, or custom to --mix");
            }
        }
        let full = match values.count("records-per-commit")? {
            0 => Full::Bytes(values.count("arm-buffer-bytes")?),
            given => Full::Records(given),
        };
        let buffers = match values.count("arm-buffers")? {
            0 if values.int("events")? > 0 => STUDY_BUFFERS,
            0 => 2 * threads,
            given => given,
        };
        let source = Source::new(mix.clone(), full, Rng::new(seed, PRODUCER_STREAM));
        Ok(Self {
            threads,
            full,
            buffers,
            verify: values.flag("verify")?,
            shared: Arc::new(Shared {
                queue: Arc::new(Queue::new(source, buffers)),
                mix,
                mode: match values.text("arm-mode")? {
                    Some("row") => Mode::Row,
                    Some("bulk") => Mode::Bulk,
                    _ => Mode::Multi,
                },
                server_ids: values.text("ids")? == Some("server"),
                tally: Tally::default(),
            }),
        })
    }
}

impl Load for ArmLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Writer::open(shared, thread, client)?))
    }

    fn handles(&self) -> usize {
        match self.shared.mode {
            Mode::Bulk => 1,
            // COMMIT is one too.
            mode => 1 + handles(&self.shared.mix, mode == Mode::Row),
        }
    }

    fn operations_per_event(&self) -> f64 {
        match self.full {
            Full::Records(records) => records as f64,
            Full::Bytes(bytes) => (bytes as f64 / self.shared.mix.record_bytes()).max(1.0),
        }
    }

    fn drains(&self) -> bool {
        true
    }

    fn begin(&self, events: Option<u64>) {
        self.shared.tally.reset();
        Queue::start(&self.shared.queue, events);
    }

    fn stop(&self) {
        self.shared.queue.stop();
    }

    fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        if self.verify {
            self.shared.tally.count(moment, connection)?;
        }
        Ok(())
    }

    fn details(&self, seconds: f64) -> Map<String, Json> {
        let (shared, waits, sums) = (&self.shared, self.shared.queue.waits(), self.shared.tally.sums());
        let per_second = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let (full_seconds, idle_seconds) = (waits.producer_ns as f64 / 1e9, waits.writers_ns as f64 / 1e9);
        let idle = idle_seconds > IDLE_SHARE * seconds * self.threads as f64;
        let mut details = Map::new();
        let mut tell = |name: &str, value: Json| drop(details.insert(name.to_owned(), value));
        tell("scenario", json!(shared.mix.label()));
        tell("arm_mode", json!(shared.mode.name()));
        tell("ids", json!(if shared.server_ids { "server" } else { "client" }));
        tell("threads", json!(self.threads));
        tell("record_bytes", json!(shared.mix.record_bytes()));
        tell(
            "records_per_commit",
            records_per_commit(self.full, &shared.mix, sums),
        );
        tell("buffers", json!(self.buffers));
        tell("rows_per_second", json!(per_second(sums.rows)));
        tell("statements_per_second", json!(per_second(sums.statements)));
        tell("queue_full_seconds", json!(full_seconds));
        tell("writers_idle_seconds", json!(idle_seconds));
        // Not when buffers were lacking as well: then both sides waited for something else, such as one long commit.
        let waited = full_seconds > IDLE_SHARE * seconds;
        tell("producer_bound", json!(idle && !waited));
        if let Some(growth) = shared.tally.growth() {
            tell("rows_counted", json!(growth));
            tell("verified", json!(growth == sums.rows));
        }
        details
    }
}

/// What fits into a buffer; the mean of the run where buffers of one size hold records of several.
fn records_per_commit(full: Full, mix: &Mix, sums: Sums) -> Json {
    match full {
        Full::Records(records) => json!(records),
        Full::Bytes(bytes) if mix.scenarios().count() == 1 => {
            json!(((bytes as f64 / mix.record_bytes()) as usize).max(1))
        }
        Full::Bytes(_) => json!((sums.commits > 0).then(|| sums.records as f64 / sums.commits as f64)),
    }
}
