//! Inserts of Application Response Measurement records, as a monitoring data path writes them: one producer fills buffers,
//! writer threads store each buffer as one database transaction. Seven scenarios differ in the detail rows per record.

mod queue;
mod record;
mod schema;
mod writer;

use std::sync::Arc;

use anyhow::Context;
use anyhow::Result;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::DbError;
use crate::engine::client::Client;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::random::Rng;
use crate::workload::Descriptor;
use crate::workload::Load;
use crate::workload::Session;
use crate::workload::Setup;
use crate::workload::Workload;
use queue::Queue;
use record::SCENARIOS;
use record::Scenario;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "scenario",
        Kind::Choice(&["simple", "parent", "metrics", "ctx1", "ctx5", "ctx10", "ctx20"]),
        Some("simple"),
        "detail of a record: none, a parent correlator, 3 metrics, or 1 to 20 context values",
    ),
    OptionSpec::new(
        "arm-mode",
        Kind::Choice(&["multi"]),
        Some("multi"),
        "multi: one INSERT per record and one multi-row INSERT per detail table",
    ),
    OptionSpec::new(
        "arm-buffer-bytes",
        Kind::Int(200, 1 << 30),
        Some("196608"),
        "size of a buffer; one buffer is one database transaction",
    ),
    OptionSpec::new(
        "records-per-commit",
        Kind::Int(0, 10_000_000),
        Some("0"),
        "records in a buffer; 0: by its bytes and the size of a record",
    ),
    OptionSpec::new(
        "arm-buffers",
        Kind::Int(0, 65_536),
        Some("0"),
        "buffers between producer and writers; 0: 1024 with --events, else two per thread, so that the drain stays short",
    ),
    OptionSpec::new(
        "parent-key",
        Kind::Flag,
        Some("off"),
        "prepare: an index on parent_corr",
    ),
];

/// The buffers of the published study.
const STUDY_BUFFERS: usize = 1024;
/// Keeps the producer's stream apart from those of threads.
const PRODUCER_STREAM: u64 = 1 << 33;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "arm_insert",
    summary: "response-time records inserted buffer by buffer, with detail rows in their own tables",
    operation: "ARM transaction (one committed record with its detail rows)",
    types: &["arm_commit"],
    options: &[OPTIONS],
    database: "arm",
};

/// The workload `arm_insert`.
#[derive(Debug)]
pub struct ArmInsert;

impl Workload for ArmInsert {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        schema::prepare(setup)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        setup
            .output
            .line("arm_insert reads nothing: there is nothing to warm up");
        Ok(())
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::cleanup(setup)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        let name = values.text("scenario")?.unwrap_or_default();
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
        let scenario = *scenario.with_context(|| format!("--scenario={name} is not a scenario"))?;
        let records = match values.count("records-per-commit")? {
            0 => scenario.records_in(values.count("arm-buffer-bytes")?),
            given => given,
        };
        let buffers = match values.count("arm-buffers")? {
            0 if values.int("events")? > 0 => STUDY_BUFFERS,
            0 => 2 * threads,
            given => given,
        };
        let rng = Rng::new(seed, PRODUCER_STREAM);
        Ok(Box::new(ArmLoad {
            scenario,
            records,
            buffers,
            queue: Arc::new(Queue::new(scenario, records, buffers, rng)),
        }))
    }
}

/// The workload with its options.
struct ArmLoad {
    scenario: Scenario,
    records: usize,
    buffers: usize,
    queue: Arc<Queue>,
}

impl Load for ArmLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let queue = Arc::clone(&self.queue);
        Ok(Box::new(writer::Writer::open(
            queue,
            self.scenario,
            thread,
            client,
        )?))
    }

    fn drains(&self) -> bool {
        true
    }

    fn begin(&self, events: Option<u64>) {
        Queue::start(&self.queue, events);
    }

    fn stop(&self) {
        self.queue.stop();
    }

    fn details(&self, _seconds: f64) -> Map<String, Json> {
        let waits = self.queue.waits();
        let mut details = Map::new();
        details.insert("scenario".to_owned(), json!(self.scenario.name));
        details.insert("record_bytes".to_owned(), json!(self.scenario.record_bytes()));
        details.insert("records_per_commit".to_owned(), json!(self.records));
        details.insert("buffers".to_owned(), json!(self.buffers));
        details.insert(
            "queue_full_seconds".to_owned(),
            json!(waits.producer_ns as f64 / 1e9),
        );
        details.insert(
            "writers_idle_seconds".to_owned(),
            json!(waits.writers_ns as f64 / 1e9),
        );
        details
    }
}
