//! The options of sysbench's OLTP scripts that change statements. Every script accepts all of them,
//! as in sysbench.

use crate::options::Kind;
use crate::options::OptionSpec;

const MANY: i64 = 1_000_000;

/// Options of every script on the OLTP tables.
pub const STATEMENTS: &[OptionSpec] = &[
    OptionSpec::new("range-size", Kind::Int(1, MANY), Some("100"), "rows of a range"),
    OptionSpec::new(
        "point-selects",
        Kind::Int(0, MANY),
        Some("10"),
        "point selects per transaction; 1 in oltp_point_select",
    ),
    OptionSpec::new("range-selects", Kind::Flag, Some("on"), "off: no range selects"),
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
        "no BEGIN and COMMIT: every statement is autocommitted",
    ),
];

/// Options of `select_random_points`.
pub const POINTS: &[OptionSpec] = &[OptionSpec::new(
    "random-points",
    Kind::Int(1, 10_000),
    Some("10"),
    "values in the IN () of a SELECT",
)];

/// Options of `select_random_ranges`.
pub const RANGES: &[OptionSpec] = &[
    OptionSpec::new(
        "number-of-ranges",
        Kind::Int(1, 10_000),
        Some("10"),
        "BETWEEN ranges in a SELECT",
    ),
    OptionSpec::new(
        "delta",
        Kind::Int(0, MANY),
        Some("5"),
        "distance between the ends of a range",
    ),
];
