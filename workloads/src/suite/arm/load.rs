//! The load of `arm_insert`: sets up queue and writers by the options and reports the details of
//! the result.

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

/// Buffers in the published study.
const STUDY_BUFFERS: usize = 1024;
/// Separates the producer's random stream from those of the threads.
const PRODUCER_STREAM: u64 = 1 << 33;
/// Above this share of idle time the writers are not the bottleneck.
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
    pub fn new(values: &Values, threads: usize, seed: u64) -> Result<Self> {
        let mix = Mix::of(values)?;
        for option in ["parent", "metrics", "contexts"] {
            if values.given(option)? && !mix.scenarios().any(|scenario| scenario.name == "custom") {
                bail!(
                    "--{option} applies to the scenario custom only: add --scenario=custom, or custom to --mix"
                );
            }
        }
        let full = match values.count("records-per-commit")? {
            0 => Full::Bytes(values.count("arm-buffer-bytes")?),
            given => Full::Records(given),
        };
        let short = 2 * threads;
        let (buffers, if_timed) = match values.count("arm-buffers")? {
            0 if values.int("events")? > 0 => (STUDY_BUFFERS, short),
            0 => (short, short),
            given => (given, given),
        };
        let source = Source::new(mix.clone(), full, Rng::new(seed, PRODUCER_STREAM));
        Ok(Self {
            threads,
            full,
            buffers,
            verify: values.flag("verify")?,
            shared: Arc::new(Shared {
                queue: Arc::new(Queue::new(source, buffers, if_timed)),
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
            // One for COMMIT.
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
        let mut add = |name: &str, value: Json| drop(details.insert(name.to_owned(), value));
        add("scenario", json!(shared.mix.label()));
        add("arm_mode", json!(shared.mode.name()));
        add("ids", json!(if shared.server_ids { "server" } else { "client" }));
        add("threads", json!(self.threads));
        add("record_bytes", json!(shared.mix.record_bytes()));
        add(
            "records_per_commit",
            records_per_commit(self.full, &shared.mix, sums),
        );
        add("buffers", json!(self.buffers));
        add("rows_per_second", json!(per_second(sums.rows)));
        add("statements_per_second", json!(per_second(sums.statements)));
        add("queue_full_seconds", json!(full_seconds));
        add("writers_idle_seconds", json!(idle_seconds));
        // False when the producer waited too: then both sides waited for something else, such as a
        // long commit.
        let producer_waited = full_seconds > IDLE_SHARE * seconds;
        add("producer_bound", json!(idle && !producer_waited));
        if let Some(growth) = shared.tally.growth() {
            add("rows_counted", json!(growth));
            add("verified", json!(growth == sums.rows));
        }
        details
    }
}

/// Records of a buffer; the mean of the run where record sizes differ.
fn records_per_commit(full: Full, mix: &Mix, sums: Sums) -> Json {
    match full {
        Full::Records(records) => json!(records),
        Full::Bytes(bytes) if mix.scenarios().count() == 1 => {
            json!(((bytes as f64 / mix.record_bytes()) as usize).max(1))
        }
        Full::Bytes(_) => json!((sums.commits > 0).then(|| sums.records as f64 / sums.commits as f64)),
    }
}
