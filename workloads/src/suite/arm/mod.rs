//! The workload `arm_insert` inserts Application Response Measurement records like a monitoring
//! system: one producer fills buffers, and writer threads store each buffer as one database
//! transaction. Scenarios differ in the detail rows per record.

mod load;
mod queue;
mod record;
mod scenario;
mod statements;
mod tables;

use anyhow::Result;
use serde::Deserialize;
use serde::Serialize;

use crate::driver::Connection;
use crate::engine::load::Load;
use crate::external;
use crate::options::Values;
use crate::options::options;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Point;
use crate::workload::Setup;
use crate::workload::Workload;

options! {
    OPTIONS, Options;
    scenario: String = Text("LIST")
        .default("simple")
        .help("details of a record: simple, parent (a correlator), metrics (3), ctx1, ctx5, ctx10, ctx20 (context values), custom; \
         a list or `all`: one run each"),
    mix: Option<String> = Text("LIST")
        .help("scenarios drawn record by record, with weights, such as simple:50,ctx5:50"),
    parent: bool = Flag
        .default("off")
        .help("scenario custom: records have a parent correlator"),
    metrics: usize = Int(0, 127)
        .default("0")
        .help("scenario custom: rows in arm_metric per record"),
    contexts: usize = Int(0, 127)
        .default("0")
        .help("scenario custom: rows in arm_ctx per record"),
    arm_mode: Mode = Choice(&["multi", "row", "bulk"])
        .default("multi")
        .help("multi: one INSERT per record and one multi-row INSERT per detail table; row: one INSERT per row; \
         bulk: multi-row INSERTs of a whole buffer into each table, as text of at most 512 KiB"),
    ids: Ids = Choice(&["client", "server"])
        .default("client")
        .help("client: thread << 40 | sequence; server: AUTO_INCREMENT and LAST_INSERT_ID(), all threads insert at the end of the key"),
    arm_buffer_bytes: usize = Int(200, 1 << 30)
        .default("196608")
        .help("size of a buffer; one buffer is one database transaction"),
    records_per_commit: usize = Int(0, 10_000_000)
        .default("0")
        .help("records in a buffer; 0: --arm-buffer-bytes divided by the size of a record"),
    verify: bool = Flag
        .default("off")
        .help("count the rows of all tables before and after the measurement and compare with the committed rows"),
    check_strict: bool = Flag
        .default("off")
        .help("check: records must have the details of --scenario or --mix; off: of any scenario"),
}

/// `--arm-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Multi,
    Row,
    Bulk,
}

/// `--ids`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ids {
    Client,
    Server,
}

static DESCRIPTOR: Descriptor = Descriptor {
    name: "arm_insert",
    summary: "response-time records inserted buffer by buffer, with detail rows in separate tables",
    operation: "ARM transaction (one committed record with its detail rows)",
    types: &["arm_commit"],
    options: &[OPTIONS, external::NATIVE],
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
        tables::prepare(setup)
    }

    fn points(&self, values: &Values) -> Result<Vec<Point>> {
        let options: Options = values.read()?;
        let scenarios = match options.mix {
            Some(_) => Vec::new(),
            None => scenario::named(&options)?,
        };
        if scenarios.len() < 2 {
            return Ok(vec![Point::default()]);
        }
        let point = |scenario: scenario::Scenario| Point {
            name: scenario.name.to_owned(),
            options: vec![("scenario", scenario.name.to_owned())],
        };
        Ok(scenarios.into_iter().map(point).collect())
    }

    fn preflight(&self, _values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        tables::preflight(connection)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        tables::check(setup)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        tables::cleanup(setup)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        Ok(Box::new(load::ArmLoad::new(values, threads, seed)?))
    }
}
