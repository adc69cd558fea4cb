//! Inserts of Application Response Measurement records, as a monitoring data path writes them: one producer fills buffers,
//! writer threads store each buffer as one database transaction. Scenarios differ in the detail rows per record.

mod bulk;
mod check;
mod mix;
mod queue;
mod record;
mod schema;
mod statements;
mod tally;
mod writer;

use std::sync::Arc;

use anyhow::Result;
use anyhow::bail;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::random::Rng;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Load;
use crate::workload::Moment;
use crate::workload::Point;
use crate::workload::Session;
use crate::workload::Setup;
use crate::workload::Workload;
use mix::Mix;
use queue::Queue;
use record::Full;
use record::Source;
use tally::Tally;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "scenario",
        Kind::Text("LIST"),
        Some("simple"),
        "detail of a record: simple, parent (a correlator), metrics (3), ctx1, ctx5, ctx10, ctx20 (context values), custom; \
         a list or `all`: one run after the other",
    ),
    OptionSpec::new(
        "mix",
        Kind::Text("LIST"),
        None,
        "scenarios drawn record by record, with weights, such as simple:50,ctx5:50",
    ),
    OptionSpec::new(
        "parent",
        Kind::Flag,
        Some("off"),
        "of the scenario custom: records have a parent correlator",
    ),
    OptionSpec::new(
        "metrics",
        Kind::Int(0, 127),
        Some("0"),
        "of the scenario custom: rows in arm_metric per record",
    ),
    OptionSpec::new(
        "contexts",
        Kind::Int(0, 127),
        Some("0"),
        "of the scenario custom: rows in arm_ctx per record",
    ),
    OptionSpec::new(
        "arm-mode",
        Kind::Choice(&["multi", "row", "bulk"]),
        Some("multi"),
        "multi: one INSERT per record and one multi-row INSERT per detail table; row: one INSERT per row; \
         bulk: multi-row INSERTs of a whole buffer into each table, as text, at most 512 KiB each",
    ),
    OptionSpec::new(
        "ids",
        Kind::Choice(&["client", "server"]),
        Some("client"),
        "client: thread << 40 | sequence; server: AUTO_INCREMENT and LAST_INSERT_ID(), one right edge for all",
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
        "verify",
        Kind::Flag,
        Some("off"),
        "count the rows of all tables before and after the measurement and compare with what was committed",
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
/// Writers that wait for a longer part of their time are not the limit.
const IDLE_SHARE: f64 = 0.05;

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

    fn points(&self, values: &Values) -> Result<Vec<Point>> {
        if values.text("mix")?.is_some() {
            return Ok(vec![Point::default()]);
        }
        let names = mix::scenarios(values)?;
        if names.len() == 1 {
            return Ok(vec![Point::default()]);
        }
        let point = |name: String| Point {
            name: name.clone(),
            options: vec![("scenario", name)],
        };
        Ok(names.into_iter().map(point).collect())
    }

    fn preflight(&self, _values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        check::preflight(connection)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        check::findings(setup)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::cleanup(setup)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
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
        Ok(Box::new(ArmLoad {
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
        }))
    }
}

/// How a buffer becomes statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Row,
    Multi,
    Bulk,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Multi => "multi",
            Self::Bulk => "bulk",
        }
    }
}

/// What all writers use.
struct Shared {
    queue: Arc<Queue>,
    mix: Mix,
    mode: Mode,
    server_ids: bool,
    tally: Tally,
}

/// The workload with its options.
struct ArmLoad {
    threads: usize,
    full: Full,
    buffers: usize,
    verify: bool,
    shared: Arc<Shared>,
}

impl Load for ArmLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(writer::Writer::open(shared, thread, client)?))
    }

    fn handles(&self) -> usize {
        match self.shared.mode {
            Mode::Bulk => 1,
            // COMMIT is one too.
            mode => 1 + statements::handles(&self.shared.mix, mode == Mode::Row),
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
fn records_per_commit(full: Full, mix: &Mix, sums: tally::Sums) -> Json {
    match full {
        Full::Records(records) => json!(records),
        Full::Bytes(bytes) if mix.scenarios().count() == 1 => {
            json!(((bytes as f64 / mix.record_bytes()) as usize).max(1))
        }
        Full::Bytes(_) => json!((sums.commits > 0).then(|| sums.records as f64 / sums.commits as f64)),
    }
}
