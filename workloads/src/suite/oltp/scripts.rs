//! The table of scripts. A new script of groups of statements is an entry here and a line in the
//! list of workloads.

use super::Event;
use super::Oltp;
use super::options::POINTS;
use super::options::RANGES;
use super::options::STATEMENTS;
use super::statements::DELETE_INSERTS;
use super::statements::DISTINCT_RANGES;
use super::statements::INDEX_UPDATES;
use super::statements::NON_INDEX_UPDATES;
use super::statements::ONE_DELETE;
use super::statements::ONE_POINT_SELECT;
use super::statements::ORDER_RANGES;
use super::statements::POINT_SELECTS;
use super::statements::SIMPLE_RANGES;
use super::statements::SUM_RANGES;
use crate::options::OptionSpec;
use crate::random;
use crate::suite::sbtest::TABLES;
use crate::workload::Descriptor;

const OPTIONS: &[&[OptionSpec]] = &[TABLES, STATEMENTS, random::OPTIONS];

/// 14 reads and 4 writes in a transaction.
pub static READ_WRITE: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_read_write",
        summary: "sysbench's mixed transaction: 10 point selects, 4 range selects, 2 updates, delete + insert",
        operation: "sysbench event (one transaction)",
        types: &["oltp_read_write"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Transaction(&[
        POINT_SELECTS,
        SIMPLE_RANGES,
        SUM_RANGES,
        ORDER_RANGES,
        DISTINCT_RANGES,
        INDEX_UPDATES,
        NON_INDEX_UPDATES,
        DELETE_INSERTS,
    ]),
};

/// 14 reads in a transaction.
pub static READ_ONLY: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_read_only",
        summary: "sysbench's read-only transaction: 10 point selects, 4 range selects",
        operation: "sysbench event (one transaction)",
        types: &["oltp_read_only"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Transaction(&[
        POINT_SELECTS,
        SIMPLE_RANGES,
        SUM_RANGES,
        ORDER_RANGES,
        DISTINCT_RANGES,
    ]),
};

/// 4 writes in a transaction.
pub static WRITE_ONLY: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_write_only",
        summary: "sysbench's write-only transaction: 2 updates, delete + insert",
        operation: "sysbench event (one transaction)",
        types: &["oltp_write_only"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Transaction(&[INDEX_UPDATES, NON_INDEX_UPDATES, DELETE_INSERTS]),
};

/// One autocommitted SELECT by primary key.
pub static POINT_SELECT: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_point_select",
        summary: "sysbench's point select by primary key",
        operation: "sysbench event (one point select)",
        types: &["oltp_point_select"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Groups(&[ONE_POINT_SELECT]),
};

/// One UPDATE of an indexed column.
pub static UPDATE_INDEX: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_update_index",
        summary: "sysbench's autocommitted update of an indexed column",
        operation: "sysbench event (--index-updates updates)",
        types: &["oltp_update_index"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Groups(&[INDEX_UPDATES]),
};

/// One UPDATE of a column without index.
pub static UPDATE_NON_INDEX: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_update_non_index",
        summary: "sysbench's autocommitted update of a column without index",
        operation: "sysbench event (--non-index-updates updates)",
        types: &["oltp_update_non_index"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Groups(&[NON_INDEX_UPDATES]),
};

/// One DELETE by primary key, until the table is empty.
pub static DELETE: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_delete",
        summary: "sysbench's delete by primary key; deletes of a missing row count as other statements",
        operation: "sysbench event (one DELETE, whether it finds a row or not)",
        types: &["oltp_delete"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Groups(&[ONE_DELETE]),
};

/// One INSERT as text.
pub static INSERT: Oltp = Oltp {
    descriptor: Descriptor {
        name: "oltp_insert",
        summary: "sysbench's insert, always as text; --auto-inc=off: unique ids of the client, and prepare leaves the tables empty",
        operation: "sysbench event (one inserted row)",
        types: &["oltp_insert"],
        options: OPTIONS,
        database: "sbtest",
    },
    event: Event::Insert,
};

/// One SELECT of several values of k.
pub static RANDOM_POINTS: Oltp = Oltp {
    descriptor: Descriptor {
        name: "select_random_points",
        summary: "sysbench's SELECT ... WHERE k IN (...), each thread in its slice of one table",
        operation: "sysbench event (one SELECT)",
        types: &["select_random_points"],
        options: &[TABLES, STATEMENTS, POINTS, random::OPTIONS],
        database: "sbtest",
    },
    event: Event::RandomPoints,
};

/// One SELECT of several ranges of k.
pub static RANDOM_RANGES: Oltp = Oltp {
    descriptor: Descriptor {
        name: "select_random_ranges",
        summary: "sysbench's SELECT count(k) over several ranges of k, each thread in its slice of one table",
        operation: "sysbench event (one SELECT)",
        types: &["select_random_ranges"],
        options: &[TABLES, STATEMENTS, RANGES, random::OPTIONS],
        database: "sbtest",
    },
    event: Event::RandomRanges,
};
