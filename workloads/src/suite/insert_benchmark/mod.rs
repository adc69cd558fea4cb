//! The insert benchmark (Tokutek's iibench as Mark Callaghan runs it): a load in key order,
//! secondary indexes, equal numbers of inserts and deletes, and queries during inserts and deletes
//! at a promised rate. Each step is a separate run.

mod check;
mod load;
mod pair;
mod reader;
mod rows;
mod schedule;
mod settle;
mod shared;
mod step;
mod table;
mod writers;

use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;
use crate::driver::protocol::Protocol;
use crate::engine::load::Load;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::share::Share;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Point;
use crate::workload::Setup;
use crate::workload::Workload;
use step::Step;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "steps",
        Kind::Text("LIST"),
        Some("l.i0,l.x,l.i1,l.i2,settle,qr100,qp100,qr500,qp500,qr1000,qp1000"),
        "steps in order: l.i0 loads, l.x adds the indexes, l.i1 and l.i2 insert and delete, settle waits for the writeback of \
         dirty pages, qrN and qpN run range and point queries during N inserts and deletes per second, for --time [default: 60]",
    ),
    OptionSpec::new(
        "shared-table",
        Kind::Flag,
        Some("off"),
        "one table for all clients (--threads) instead of one per client",
    ),
    OptionSpec::new(
        "rows-i0",
        Kind::Int(1, 1_000_000_000_000),
        Some("1000000"),
        "rows that each client inserts in l.i0",
    ),
    OptionSpec::new(
        "rows-i1",
        Kind::Int(1, 1_000_000_000_000),
        Some("160000"),
        "rows that each client inserts, and deletes, in l.i1",
    ),
    OptionSpec::new(
        "rows-i2",
        Kind::Int(1, 1_000_000_000_000),
        Some("40000"),
        "rows that each client inserts, and deletes, in l.i2",
    ),
    OptionSpec::new(
        "settle-time",
        Kind::Duration,
        Some("60"),
        "wait of the step settle, plus this time per 60 million rows, at most twenty times this time",
    ),
    OptionSpec::new(
        "rate-promise",
        Kind::Number(0.0, 1.0),
        Some("0.97"),
        "share of the insert rate that a step with queries must reach for its queries to be comparable",
    ),
];

/// Length of a step with queries without --time.
const QUERY_SECONDS: &str = "60";

static DESCRIPTOR: Descriptor = Descriptor {
    name: "insert_benchmark",
    summary: "the insert benchmark: load, indexes, inserts with deletes, queries at a fixed insert rate",
    operation: "insert benchmark row or query, by the step",
    types: &[
        "insert",
        "delete",
        "range_query",
        "point_query",
        "create_index",
        "settle",
    ],
    options: &[OPTIONS],
    database: "ib",
};

/// The workload `insert_benchmark`.
#[derive(Debug)]
pub struct InsertBenchmark;

impl InsertBenchmark {
    fn step(values: &Values) -> Result<Step> {
        match Step::list(values)?.as_slice() {
            [step] => Ok(*step),
            _ => bail!("--steps: one step per run"),
        }
    }
}

impl Workload for InsertBenchmark {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        table::prepare(setup)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        let mut connection = setup.driver.connect()?;
        for table in table::names(setup.values, setup.threads)? {
            setup.output.line(&format!("Reading table '{table}'..."));
            let mut indexes = vec!["PRIMARY".to_owned()];
            let secondary = table::indexes(connection.as_mut(), &table)?;
            indexes.extend(secondary.into_iter().map(|(name, _)| name));
            for index in indexes {
                connection.rows(&format!("SELECT COUNT(*) FROM {table} FORCE INDEX (`{index}`)"))?;
            }
        }
        Ok(())
    }

    fn protocol(&self) -> Option<Protocol> {
        // iibench sends texts.
        Some(Protocol::Emulated)
    }

    /// A step starts when all clients have ended the one before.
    fn divides(&self) -> bool {
        false
    }

    fn points(&self, values: &Values) -> Result<Vec<Point>> {
        if values.int("events")? > 0 {
            bail!("--events: not used by insert_benchmark; give --rows-i0, --rows-i1, --rows-i2 or --time");
        }
        if values.number("rate").is_ok_and(|rate| rate > 0.0) {
            bail!("--rate: the name of a step contains its rate, such as qr500");
        }
        let mut points = Vec::new();
        for step in Step::list(values)? {
            let mut options = vec![("steps", step.name())];
            match step {
                Step::Query { .. } if values.given("time")? => {
                    if values.number("time")? <= 0.0 {
                        bail!("--time=0: step {} needs a time limit", step.name());
                    }
                }
                Step::Query { .. } => options.push(("time", QUERY_SECONDS.to_owned())),
                // These end after their rows, all of which are measured.
                _ => options.extend(["time", "warmup-time", "ramp-time"].map(|name| (name, "0".to_owned()))),
            }
            points.push(Point {
                name: step.name(),
                options,
            });
        }
        Ok(points)
    }

    fn preflight(&self, values: &Values, share: Share, connection: &mut dyn Connection) -> Result<()> {
        table::preflight(connection, values, share.threads, Self::step(values)?)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        check::findings(setup)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        table::cleanup(setup)
    }

    fn load(&self, values: &Values, share: Share, seed: u64) -> Result<Box<dyn Load>> {
        Ok(Box::new(load::StepLoad::new(
            values,
            Self::step(values)?,
            share.threads,
            seed,
        )?))
    }
}
