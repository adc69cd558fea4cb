//! The tables `sbtest1` to `sbtestN` of sysbench, which the OLTP scripts and `lookup` share.

pub mod bulk;
pub mod check;
pub mod preflight;
pub mod schema;

use crate::options::OptionSpec;

/// Options of every workload on these tables.
pub const TABLES: &[OptionSpec] = &[
    OptionSpec::int("tables", 1, 100_000)
        .default("1")
        .help("number of tables"),
    OptionSpec::int("table-size", 1, i32::MAX as i64)
        .default("10000")
        .help("rows per table"),
    OptionSpec::flag("auto-inc")
        .default("on")
        .help("AUTO_INCREMENT ids; off: ids of the client"),
    OptionSpec::flag("secondary")
        .default("off")
        .help("prepare: a secondary index instead of the primary key"),
    OptionSpec::flag("create-secondary")
        .default("on")
        .help("prepare: an index on k"),
    OptionSpec::text("mysql-storage-engine", "ENGINE")
        .default("innodb")
        .help("prepare: storage engine"),
    OptionSpec::text("create-table-options", "OPTIONS")
        .default("")
        .help("prepare: additional options of CREATE TABLE, such as ROW_FORMAT=COMPRESSED"),
];
