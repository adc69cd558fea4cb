//! The statements of the scripts, as data: texts with typed parameters, in groups that run on one
//! table.

use anyhow::Result;

use crate::driver::ParamType;
use crate::options::Values;

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

/// A statement; `%u` stands for the number of the table.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    /// The text.
    pub sql: &'static str,
    /// The value of each `?`.
    pub params: &'static [Param],
}

impl Statement {
    /// The text for a table.
    pub fn on(&self, table: usize) -> String {
        self.sql.replace("%u", &table.to_string())
    }
}

/// How often a group runs per event.
#[derive(Debug, Clone, Copy)]
pub enum Repeat {
    /// Once.
    Once,
    /// By the value of this option.
    Option(&'static str),
    /// By the value of this option; never with `--range-selects=off`.
    Range(&'static str),
}

impl Repeat {
    /// The number of repetitions by the options.
    pub fn times(self, values: &Values) -> Result<usize> {
        match self {
            Self::Range(_) if !values.flag("range-selects")? => Ok(0),
            Self::Once => Ok(1),
            Self::Option(name) | Self::Range(name) => values.count(name),
        }
    }
}

/// Statements that run on one table, which is drawn once per event.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Repetitions per event.
    pub repeat: Repeat,
    /// One after the other, with the same id.
    pub statements: &'static [Statement],
}

/// SELECTs of one row by its id.
pub const POINT_SELECTS: Group = Group {
    repeat: Repeat::Option("point-selects"),
    statements: &[POINT_SELECT],
};
/// The only group of oltp_point_select.
pub const ONE_POINT_SELECT: Group = Group {
    repeat: Repeat::Once,
    statements: &[POINT_SELECT],
};
/// SELECTs of a range of ids.
pub const SIMPLE_RANGES: Group = range(
    "simple-ranges",
    &[Statement {
        sql: "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?",
        params: &[Param::Id, Param::LastId],
    }],
);
/// Sums over a range.
pub const SUM_RANGES: Group = range(
    "sum-ranges",
    &[Statement {
        sql: "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?",
        params: &[Param::Id, Param::LastId],
    }],
);
/// Sorted ranges.
pub const ORDER_RANGES: Group = range(
    "order-ranges",
    &[Statement {
        sql: "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
        params: &[Param::Id, Param::LastId],
    }],
);
/// Sorted ranges without duplicates.
pub const DISTINCT_RANGES: Group = range(
    "distinct-ranges",
    &[Statement {
        sql: "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
        params: &[Param::Id, Param::LastId],
    }],
);
/// Updates of the indexed column k.
pub const INDEX_UPDATES: Group = Group {
    repeat: Repeat::Option("index-updates"),
    statements: &[Statement {
        sql: "UPDATE sbtest%u SET k=k+1 WHERE id=?",
        params: &[Param::Id],
    }],
};
/// Updates of the column c, which has no index.
pub const NON_INDEX_UPDATES: Group = Group {
    repeat: Repeat::Option("non-index-updates"),
    statements: &[Statement {
        sql: "UPDATE sbtest%u SET c=? WHERE id=?",
        params: &[Param::C, Param::Id],
    }],
};
/// Deletes of a row and INSERTs with the same id.
pub const DELETE_INSERTS: Group = Group {
    repeat: Repeat::Option("delete-inserts"),
    statements: &[
        DELETE,
        Statement {
            sql: "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)",
            params: &[Param::Id, Param::K, Param::C, Param::Pad],
        },
    ],
};
/// The only statement of oltp_delete.
pub const ONE_DELETE: Group = Group {
    repeat: Repeat::Once,
    statements: &[DELETE],
};

const POINT_SELECT: Statement = Statement {
    sql: "SELECT c FROM sbtest%u WHERE id=?",
    params: &[Param::Id],
};
const DELETE: Statement = Statement {
    sql: "DELETE FROM sbtest%u WHERE id=?",
    params: &[Param::Id],
};

const fn range(option: &'static str, statements: &'static [Statement]) -> Group {
    Group {
        repeat: Repeat::Range(option),
        statements,
    }
}
