//! The tables `sbtest1` to `sbtestN` of sysbench, which the OLTP scripts and `lookup` share.

pub mod bulk;
pub mod check;
pub mod preflight;
pub mod schema;

use crate::options::Kind;
use crate::options::OptionSpec;

/// Options of every workload on these tables.
pub const TABLES: &[OptionSpec] = &[
    OptionSpec::new("tables", Kind::Int(1, 100_000), Some("1"), "number of tables"),
    OptionSpec::new(
        "table-size",
        Kind::Int(1, i32::MAX as i64),
        Some("10000"),
        "rows per table",
    ),
    OptionSpec::new(
        "auto-inc",
        Kind::Flag,
        Some("on"),
        "AUTO_INCREMENT ids; off: ids of the client",
    ),
    OptionSpec::new(
        "secondary",
        Kind::Flag,
        Some("off"),
        "prepare: a secondary index instead of the primary key",
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
    OptionSpec::new(
        "create-table-options",
        Kind::Text("OPTIONS"),
        Some(""),
        "prepare: additional options of CREATE TABLE, such as ROW_FORMAT=COMPRESSED",
    ),
];
