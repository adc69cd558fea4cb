//! The scripts as data: texts with typed parameters, in groups that run on one table. A new script of
//! groups of statements is an entry here and a line in the list of workloads.

use super::Event;
use super::Oltp;
use crate::driver::ParamType;
use crate::external;
use crate::options::OptionSpec;
use crate::options::options;
use crate::random;
use crate::suite::sbtest::TABLES;
use crate::workload::Descriptor;

/// The value of a `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// The id, drawn once per repetition of a group.
    Id,
    /// The id plus `--range-size` − 1.
    LastId,
    /// Drawn like an id, independently of it.
    K,
    /// 119 characters: groups of digits.
    C,
    /// 59 characters: groups of digits.
    Pad,
}

impl Param {
    /// Its protocol type, as sysbench binds it.
    pub const fn kind(self) -> ParamType {
        match self {
            Self::Id | Self::LastId | Self::K => ParamType::Int,
            Self::C => ParamType::Char(120),
            Self::Pad => ParamType::Char(60),
        }
    }
}

/// The largest number of parameters of a statement.
pub const MAX_PARAMS: usize = 4;

/// A text with `%u` for the number of the table, and the value of each `?`.
pub type Statement = (&'static str, &'static [Param]);

/// How often a group runs per event.
type Repeat = fn(&Statements) -> usize;

/// Statements that run one after the other on one table, which is drawn once per event, with the
/// same id.
pub type Group = (Repeat, &'static [Statement]);

const POINT_SELECT: Statement = ("SELECT c FROM sbtest%u WHERE id=?", &[Param::Id]);
const DELETE_ROW: Statement = ("DELETE FROM sbtest%u WHERE id=?", &[Param::Id]);
const ENDS: &[Param] = &[Param::Id, Param::LastId];

/// The groups of `oltp_read_only`.
pub const READS: &[Group] = &[
    (|given| given.point_selects, &[POINT_SELECT]),
    (
        |given| given.ranges(given.simple_ranges),
        &[("SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", ENDS)],
    ),
    (
        |given| given.ranges(given.sum_ranges),
        &[("SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", ENDS)],
    ),
    (
        |given| given.ranges(given.order_ranges),
        &[("SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", ENDS)],
    ),
    (
        |given| given.ranges(given.distinct_ranges),
        &[(
            "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
            ENDS,
        )],
    ),
];
/// The group of `oltp_update_index`.
pub const INDEX_UPDATES: Group = (
    |given| given.index_updates,
    &[("UPDATE sbtest%u SET k=k+1 WHERE id=?", &[Param::Id])],
);
/// The group of `oltp_update_non_index`.
pub const NON_INDEX_UPDATES: Group = (
    |given| given.non_index_updates,
    &[("UPDATE sbtest%u SET c=? WHERE id=?", &[Param::C, Param::Id])],
);
/// The groups of `oltp_write_only`.
pub const WRITES: &[Group] = &[
    INDEX_UPDATES,
    NON_INDEX_UPDATES,
    (
        |given| given.delete_inserts,
        &[
            DELETE_ROW,
            (
                "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)",
                &[Param::Id, Param::K, Param::C, Param::Pad],
            ),
        ],
    ),
];

const MANY: i64 = 1_000_000;

options! {
    /// The options that change statements. Every script accepts all of them, as in sysbench.
    pub STATEMENTS, Statements;
    range_size: i64 = Int(1, MANY)
        .default("100")
        .help("rows of a range"),
    point_selects: usize = Int(0, MANY)
        .default("10")
        .help("point selects per transaction; 1 in oltp_point_select"),
    range_selects: bool = Flag
        .default("on")
        .help("off: no range selects"),
    simple_ranges: usize = Int(0, MANY)
        .default("1")
        .help("simple range selects per transaction"),
    sum_ranges: usize = Int(0, MANY)
        .default("1")
        .help("SELECT SUM() per transaction"),
    order_ranges: usize = Int(0, MANY)
        .default("1")
        .help("SELECT ... ORDER BY per transaction"),
    distinct_ranges: usize = Int(0, MANY)
        .default("1")
        .help("SELECT DISTINCT per transaction"),
    index_updates: usize = Int(0, MANY)
        .default("1")
        .help("updates of an indexed column per transaction"),
    non_index_updates: usize = Int(0, MANY)
        .default("1")
        .help("updates of a column without index per transaction"),
    delete_inserts: usize = Int(0, MANY)
        .default("1")
        .help("DELETE + INSERT of one row per transaction"),
    skip_trx: bool = Flag
        .default("off")
        .help("no BEGIN and COMMIT: every statement is autocommitted"),
}

impl Statements {
    fn ranges(&self, times: usize) -> usize {
        if self.range_selects { times } else { 0 }
    }

    /// The groups that run, with their number of repetitions.
    pub fn used(&self, groups: &[Group]) -> Vec<(usize, &'static [Statement])> {
        let all = groups
            .iter()
            .map(|(repeat, statements)| (repeat(self), *statements));
        all.filter(|(times, _)| *times > 0).collect()
    }

    /// The number of statements of these groups in an event, without BEGIN and COMMIT.
    pub fn count(&self, groups: &[Group]) -> usize {
        let used = self.used(groups);
        used.iter()
            .map(|(times, statements)| times * statements.len())
            .sum()
    }
}

options! {
    pub POINTS, Points;
    random_points: usize = Int(1, 10_000)
        .default("10")
        .help("values in the IN () of a SELECT"),
}

options! {
    pub RANGES, Ranges;
    number_of_ranges: usize = Int(1, 10_000)
        .default("10")
        .help("BETWEEN ranges in a SELECT"),
    delta: i64 = Int(0, MANY)
        .default("5")
        .help("distance between the ends of a range"),
}

const OPTIONS: &[&[OptionSpec]] = &[TABLES, STATEMENTS, random::OPTIONS, external::SYSBENCH];

/// `name` is a list, because it is also the only transaction type.
const fn script(
    name: &'static [&'static str],
    summary: &'static str,
    operation: &'static str,
    options: &'static [&'static [OptionSpec]],
    event: Event,
) -> Oltp {
    let descriptor = Descriptor {
        name: name[0],
        summary,
        operation,
        types: name,
        options,
        database: "sbtest",
    };
    Oltp { descriptor, event }
}

/// 14 reads and 4 writes in a transaction.
pub static READ_WRITE: Oltp = script(
    &["oltp_read_write"],
    "sysbench's mixed transaction: 10 point selects, 4 range selects, 2 updates, delete + insert",
    "sysbench event (one transaction)",
    OPTIONS,
    Event::Transaction(&[READS, WRITES]),
);

/// 14 reads in a transaction.
pub static READ_ONLY: Oltp = script(
    &["oltp_read_only"],
    "sysbench's read-only transaction: 10 point selects, 4 range selects",
    "sysbench event (one transaction)",
    OPTIONS,
    Event::Transaction(&[READS]),
);

/// 4 writes in a transaction.
pub static WRITE_ONLY: Oltp = script(
    &["oltp_write_only"],
    "sysbench's write-only transaction: 2 updates, delete + insert",
    "sysbench event (one transaction)",
    OPTIONS,
    Event::Transaction(&[WRITES]),
);

/// One autocommitted SELECT by primary key.
pub static POINT_SELECTS: Oltp = script(
    &["oltp_point_select"],
    "sysbench's point select by primary key",
    "sysbench event (one point select)",
    OPTIONS,
    Event::Group((|_| 1, &[POINT_SELECT])),
);

/// One UPDATE of an indexed column.
pub static UPDATE_INDEX: Oltp = script(
    &["oltp_update_index"],
    "sysbench's autocommitted update of an indexed column",
    "sysbench event (--index-updates updates)",
    OPTIONS,
    Event::Group(INDEX_UPDATES),
);

/// One UPDATE of a column without index.
pub static UPDATE_NON_INDEX: Oltp = script(
    &["oltp_update_non_index"],
    "sysbench's autocommitted update of a column without index",
    "sysbench event (--non-index-updates updates)",
    OPTIONS,
    Event::Group(NON_INDEX_UPDATES),
);

/// One DELETE by primary key, until the table is empty.
pub static DELETE: Oltp = script(
    &["oltp_delete"],
    "sysbench's delete by primary key; deletes of a missing row count as other statements",
    "sysbench event (one DELETE, whether it finds a row or not)",
    OPTIONS,
    Event::Group((|_| 1, &[DELETE_ROW])),
);

/// One INSERT as text.
pub static INSERT: Oltp = script(
    &["oltp_insert"],
    "sysbench's insert, always as text; --auto-inc=off: unique ids of the client, and prepare leaves the tables empty",
    "sysbench event (one inserted row)",
    OPTIONS,
    Event::Insert,
);

/// One SELECT of several values of k.
pub static RANDOM_POINTS: Oltp = script(
    &["select_random_points"],
    "sysbench's SELECT ... WHERE k IN (...), each thread in its slice of one table",
    "sysbench event (one SELECT)",
    &[TABLES, STATEMENTS, POINTS, random::OPTIONS, external::SYSBENCH],
    Event::RandomPoints,
);

/// One SELECT of several ranges of k.
pub static RANDOM_RANGES: Oltp = script(
    &["select_random_ranges"],
    "sysbench's SELECT count(k) over several ranges of k, each thread in its slice of one table",
    "sysbench event (one SELECT)",
    &[TABLES, STATEMENTS, RANGES, random::OPTIONS, external::SYSBENCH],
    Event::RandomRanges,
);

/// Not one of sysbench's scripts: one SELECT as a simple client program sends it, for sweeps over
/// connections and protocols.
pub static LOOKUP: Oltp = script(
    &["lookup"],
    "SELECT k by primary key with uniform table and id, as text unless --protocol is given",
    "lookup (one SELECT by primary key)",
    &[TABLES, external::NATIVE],
    Event::Lookup(&[("SELECT k FROM sbtest%u WHERE id = ?", &[Param::Id])]),
);
