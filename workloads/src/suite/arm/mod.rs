//! The workload `arm_insert` inserts Application Response Measurement records like a monitoring
//! system: one producer fills buffers, and writer threads store each buffer as one database
//! transaction. Scenarios differ in the detail rows per record.

mod bulk;
mod check;
mod load;
mod mix;
mod queue;
mod record;
mod scenario;
mod schema;
mod shared;
mod statements;
mod tally;
mod writer;

use anyhow::Result;

use crate::driver::Connection;
use crate::engine::load::Load;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Point;
use crate::workload::Setup;
use crate::workload::Workload;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "scenario",
        Kind::Text("LIST"),
        Some("simple"),
        "details of a record: simple, parent (a correlator), metrics (3), ctx1, ctx5, ctx10, ctx20 (context values), custom; \
         a list or `all`: one run each",
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
        "scenario custom: records have a parent correlator",
    ),
    OptionSpec::new(
        "metrics",
        Kind::Int(0, 127),
        Some("0"),
        "scenario custom: rows in arm_metric per record",
    ),
    OptionSpec::new(
        "contexts",
        Kind::Int(0, 127),
        Some("0"),
        "scenario custom: rows in arm_ctx per record",
    ),
    OptionSpec::new(
        "arm-mode",
        Kind::Choice(&["multi", "row", "bulk"]),
        Some("multi"),
        "multi: one INSERT per record and one multi-row INSERT per detail table; row: one INSERT per row; \
         bulk: multi-row INSERTs of a whole buffer into each table, as text of at most 512 KiB",
    ),
    OptionSpec::new(
        "ids",
        Kind::Choice(&["client", "server"]),
        Some("client"),
        "client: thread << 40 | sequence; server: AUTO_INCREMENT and LAST_INSERT_ID(), all threads insert at the end of the key",
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
        "records in a buffer; 0: --arm-buffer-bytes divided by the size of a record",
    ),
    OptionSpec::new(
        "arm-buffers",
        Kind::Int(0, 65_536),
        Some("0"),
        "buffers between producer and writers; 0: 1024 with --events, and two per thread in a warm-up and with --time, for a short drain",
    ),
    OptionSpec::new(
        "verify",
        Kind::Flag,
        Some("off"),
        "count the rows of all tables before and after the measurement and compare with the committed rows",
    ),
    OptionSpec::new(
        "check-strict",
        Kind::Flag,
        Some("off"),
        "check: records must have the details of --scenario or --mix; off: of any scenario",
    ),
    OptionSpec::new(
        "parent-key",
        Kind::Flag,
        Some("off"),
        "prepare: an index on parent_corr",
    ),
];

static DESCRIPTOR: Descriptor = Descriptor {
    name: "arm_insert",
    summary: "response-time records inserted buffer by buffer, with detail rows in separate tables",
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
        setup.output.line("arm_insert reads no data: nothing to warm up");
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
        Ok(Box::new(load::ArmLoad::new(values, threads, seed)?))
    }
}
