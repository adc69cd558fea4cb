//! Sysbench's OLTP scripts on its `sbtest` schema, statement for statement (src/lua/oltp_common.lua of sysbench 1.0.20).
//! Data prepared by either tool serve the other.

mod schema;
mod session;

use anyhow::Result;

use crate::driver::DbError;
use crate::engine::client::Client;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::random;
use crate::random::Distribution;
use crate::random::Rng;
use crate::workload::Descriptor;
use crate::workload::Load;
use crate::workload::Session;
use crate::workload::Setup;
use crate::workload::Workload;

const MANY: i64 = 1_000_000;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new("tables", Kind::Int(1, 100_000), Some("1"), "number of tables"),
    OptionSpec::new(
        "table-size",
        Kind::Int(1, i32::MAX as i64),
        Some("10000"),
        "rows per table",
    ),
    OptionSpec::new("range-size", Kind::Int(1, MANY), Some("100"), "rows of a range"),
    OptionSpec::new(
        "point-selects",
        Kind::Int(0, MANY),
        Some("10"),
        "point selects per transaction; 1 in oltp_point_select",
    ),
    OptionSpec::new(
        "range-selects",
        Kind::Flag,
        Some("on"),
        "off leaves out all range selects",
    ),
    OptionSpec::new(
        "simple-ranges",
        Kind::Int(0, MANY),
        Some("1"),
        "simple range selects per transaction",
    ),
    OptionSpec::new(
        "sum-ranges",
        Kind::Int(0, MANY),
        Some("1"),
        "SELECT SUM() per transaction",
    ),
    OptionSpec::new(
        "order-ranges",
        Kind::Int(0, MANY),
        Some("1"),
        "SELECT ... ORDER BY per transaction",
    ),
    OptionSpec::new(
        "distinct-ranges",
        Kind::Int(0, MANY),
        Some("1"),
        "SELECT DISTINCT per transaction",
    ),
    OptionSpec::new(
        "index-updates",
        Kind::Int(0, MANY),
        Some("1"),
        "updates of an indexed column per transaction",
    ),
    OptionSpec::new(
        "non-index-updates",
        Kind::Int(0, MANY),
        Some("1"),
        "updates of a column without index per transaction",
    ),
    OptionSpec::new(
        "delete-inserts",
        Kind::Int(0, MANY),
        Some("1"),
        "DELETE + INSERT of one row per transaction",
    ),
    OptionSpec::new(
        "skip-trx",
        Kind::Flag,
        Some("off"),
        "no BEGIN and COMMIT: every statement commits itself",
    ),
    OptionSpec::new(
        "auto-inc",
        Kind::Flag,
        Some("on"),
        "prepare: ids from AUTO_INCREMENT",
    ),
    OptionSpec::new(
        "secondary",
        Kind::Flag,
        Some("off"),
        "prepare: a secondary index in place of the primary key",
    ),
    OptionSpec::new(
        "create-secondary",
        Kind::Flag,
        Some("on"),
        "prepare: an index on k",
    ),
    OptionSpec::new(
        "mysql-storage-engine",
        Kind::Text("ENGINE"),
        Some("innodb"),
        "prepare: storage engine",
    ),
];

/// A script of the family.
#[derive(Debug)]
pub struct Oltp {
    descriptor: Descriptor,
    counts: fn(&Values) -> Result<Counts>,
}

/// oltp_read_write: 14 reads and 4 writes in a transaction.
pub static READ_WRITE: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_read_write",
        summary: "sysbench's mixed transaction: 10 point selects, 4 range selects, 2 updates, delete + insert",
        operation: "sysbench event (one transaction)",
        types: &["oltp_read_write"],
        options: &[OPTIONS, random::OPTIONS],
        database: "sbtest",
    },
    counts: Counts::of_options,
};

/// oltp_point_select: one SELECT by primary key, committed by itself.
pub static POINT_SELECT: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_point_select",
        summary: "sysbench's point select by primary key",
        operation: "sysbench event (one point select)",
        types: &["oltp_point_select"],
        options: &[OPTIONS, random::OPTIONS],
        database: "sbtest",
    },
    counts: |_| {
        Ok(Counts {
            point_selects: 1,
            ..Counts::default()
        })
    },
};

/// How many statements of each kind make a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    transaction: bool,
    point_selects: usize,
    simple_ranges: usize,
    sum_ranges: usize,
    order_ranges: usize,
    distinct_ranges: usize,
    index_updates: usize,
    non_index_updates: usize,
    delete_inserts: usize,
}

impl Counts {
    fn of_options(values: &Values) -> Result<Self> {
        let ranges = values.flag("range-selects")?;
        let range = |name| Ok::<_, anyhow::Error>(if ranges { values.count(name)? } else { 0 });
        Ok(Self {
            transaction: !values.flag("skip-trx")?,
            point_selects: values.count("point-selects")?,
            simple_ranges: range("simple-ranges")?,
            sum_ranges: range("sum-ranges")?,
            order_ranges: range("order-ranges")?,
            distinct_ranges: range("distinct-ranges")?,
            index_updates: values.count("index-updates")?,
            non_index_updates: values.count("non-index-updates")?,
            delete_inserts: values.count("delete-inserts")?,
        })
    }
}

impl Workload for Oltp {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        schema::prepare(setup)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::warmup(setup)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::cleanup(setup)
    }

    fn load(&self, values: &Values, _threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        Ok(Box::new(OltpLoad {
            counts: (self.counts)(values)?,
            tables: values.count("tables")?,
            table_size: values.int("table-size")?,
            range_size: values.int("range-size")?,
            keys: Distribution::from_options(values)?,
            seed,
        }))
    }
}

/// A script with its options.
#[derive(Debug)]
struct OltpLoad {
    counts: Counts,
    tables: usize,
    table_size: i64,
    range_size: i64,
    keys: Distribution,
    seed: u64,
}

impl Load for OltpLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let rng = Rng::new(self.seed, thread as u64);
        Ok(Box::new(session::OltpSession::open(self, client, rng)?))
    }
}
