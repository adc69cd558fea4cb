//! The options of sysbench's OLTP scripts that change statements. Every script accepts all of them,
//! as in sysbench.

use crate::options::OptionSpec;

const MANY: i64 = 1_000_000;

/// Options of every script on the OLTP tables.
pub const STATEMENTS: &[OptionSpec] = &[
    OptionSpec::int("range-size", 1, MANY)
        .default("100")
        .help("rows of a range"),
    OptionSpec::int("point-selects", 0, MANY)
        .default("10")
        .help("point selects per transaction; 1 in oltp_point_select"),
    OptionSpec::flag("range-selects")
        .default("on")
        .help("off: no range selects"),
    OptionSpec::int("simple-ranges", 0, MANY)
        .default("1")
        .help("simple range selects per transaction"),
    OptionSpec::int("sum-ranges", 0, MANY)
        .default("1")
        .help("SELECT SUM() per transaction"),
    OptionSpec::int("order-ranges", 0, MANY)
        .default("1")
        .help("SELECT ... ORDER BY per transaction"),
    OptionSpec::int("distinct-ranges", 0, MANY)
        .default("1")
        .help("SELECT DISTINCT per transaction"),
    OptionSpec::int("index-updates", 0, MANY)
        .default("1")
        .help("updates of an indexed column per transaction"),
    OptionSpec::int("non-index-updates", 0, MANY)
        .default("1")
        .help("updates of a column without index per transaction"),
    OptionSpec::int("delete-inserts", 0, MANY)
        .default("1")
        .help("DELETE + INSERT of one row per transaction"),
    OptionSpec::flag("skip-trx")
        .default("off")
        .help("no BEGIN and COMMIT: every statement is autocommitted"),
];

/// Options of `select_random_points`.
pub const POINTS: &[OptionSpec] = &[OptionSpec::int("random-points", 1, 10_000)
    .default("10")
    .help("values in the IN () of a SELECT")];

/// Options of `select_random_ranges`.
pub const RANGES: &[OptionSpec] = &[
    OptionSpec::int("number-of-ranges", 1, 10_000)
        .default("10")
        .help("BETWEEN ranges in a SELECT"),
    OptionSpec::int("delta", 0, MANY)
        .default("5")
        .help("distance between the ends of a range"),
];
