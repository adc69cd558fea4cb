//! One thread of an OLTP script: its statements for each table, and the event.

use super::Counts;
use super::OltpLoad;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::random::Distribution;
use crate::random::Rng;
use crate::workload::Session;
use crate::workload::Step;

const INT: ParamType = ParamType::Int;
const C: ParamType = ParamType::Char(120);
const PAD: ParamType = ParamType::Char(60);

/// The kinds of statement there are per table.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Key {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

const KEYS: usize = Key::Insert as usize + 1;

impl Key {
    /// Text around the table's number, and the parameters.
    const fn definition(self) -> (&'static str, &'static str, &'static [ParamType]) {
        match self {
            Self::PointSelect => ("SELECT c FROM sbtest", " WHERE id=?", &[INT]),
            Self::SimpleRange => ("SELECT c FROM sbtest", " WHERE id BETWEEN ? AND ?", &[INT, INT]),
            Self::SumRange => (
                "SELECT SUM(k) FROM sbtest",
                " WHERE id BETWEEN ? AND ?",
                &[INT, INT],
            ),
            Self::OrderRange => (
                "SELECT c FROM sbtest",
                " WHERE id BETWEEN ? AND ? ORDER BY c",
                &[INT, INT],
            ),
            Self::DistinctRange => (
                "SELECT DISTINCT c FROM sbtest",
                " WHERE id BETWEEN ? AND ? ORDER BY c",
                &[INT, INT],
            ),
            Self::IndexUpdate => ("UPDATE sbtest", " SET k=k+1 WHERE id=?", &[INT]),
            Self::NonIndexUpdate => ("UPDATE sbtest", " SET c=? WHERE id=?", &[C, INT]),
            Self::Delete => ("DELETE FROM sbtest", " WHERE id=?", &[INT]),
            Self::Insert => (
                "INSERT INTO sbtest",
                " (id, k, c, pad) VALUES (?, ?, ?, ?)",
                &[INT, INT, C, PAD],
            ),
        }
    }
}

/// Statements and random state of one thread.
pub struct OltpSession {
    counts: Counts,
    begin: Option<StatementId>,
    commit: Option<StatementId>,
    /// By table, from 0, and key; only the keys that the script uses.
    statements: Vec<[Option<StatementId>; KEYS]>,
    table_size: i64,
    range_size: i64,
    keys: Distribution,
    rng: Rng,
}

impl OltpSession {
    /// Prepares a statement for each table and kind that is used: `tables × kinds + 2` handles.
    pub fn open(load: &OltpLoad, client: &mut Client<'_>, rng: Rng) -> Result<Self, DbError> {
        let counts = load.counts;
        let used = [
            (Key::PointSelect, counts.point_selects),
            (Key::SimpleRange, counts.simple_ranges),
            (Key::SumRange, counts.sum_ranges),
            (Key::OrderRange, counts.order_ranges),
            (Key::DistinctRange, counts.distinct_ranges),
            (Key::IndexUpdate, counts.index_updates),
            (Key::NonIndexUpdate, counts.non_index_updates),
            (Key::Delete, counts.delete_inserts),
            (Key::Insert, counts.delete_inserts),
        ];
        let mut session = Self {
            counts,
            begin: None,
            commit: None,
            statements: vec![[None; KEYS]; load.tables],
            table_size: load.table_size,
            range_size: load.range_size,
            keys: load.keys,
            rng,
        };
        if counts.transaction {
            session.begin = Some(client.prepare("BEGIN", &[])?);
            session.commit = Some(client.prepare("COMMIT", &[])?);
        }
        for (position, statements) in session.statements.iter_mut().enumerate() {
            for (key, _) in used.iter().filter(|(_, count)| *count > 0) {
                let (before, after, params) = key.definition();
                let sql = format!("{before}{}{after}", position + 1);
                statements[*key as usize] = Some(client.prepare(&sql, params)?);
            }
        }
        Ok(session)
    }

    /// A table for a group of statements, uniformly.
    fn table(&mut self) -> [Option<StatementId>; KEYS] {
        let last = i64::try_from(self.statements.len()).unwrap_or(i64::MAX) - 1;
        let position = self.rng.uniform(0, last);
        usize::try_from(position)
            .ok()
            .and_then(|position| self.statements.get(position).copied())
            .unwrap_or([None; KEYS])
    }

    fn id(&mut self) -> i64 {
        self.keys.draw(&mut self.rng, 1, self.table_size)
    }

    fn run(
        client: &mut Client<'_>,
        statement: Option<StatementId>,
        values: &[Value<'_>],
    ) -> Result<(), DbError> {
        match statement {
            Some(statement) => client.execute(statement, values),
            None => Ok(()),
        }
    }

    fn ranges(&mut self, client: &mut Client<'_>, key: Key, count: usize) -> Result<(), DbError> {
        if count == 0 {
            return Ok(());
        }
        let statement = self.table()[key as usize];
        for _ in 0..count {
            let id = self.id();
            let last = (id + self.range_size - 1).min(i64::from(i32::MAX));
            Self::run(client, statement, &[Value::Int(id), Value::Int(last)])?;
        }
        Ok(())
    }

    fn by_id(&mut self, client: &mut Client<'_>, key: Key, count: usize) -> Result<(), DbError> {
        if count == 0 {
            return Ok(());
        }
        let statement = self.table()[key as usize];
        for _ in 0..count {
            let id = self.id();
            Self::run(client, statement, &[Value::Int(id)])?;
        }
        Ok(())
    }

    fn non_index_updates(&mut self, client: &mut Client<'_>) -> Result<(), DbError> {
        if self.counts.non_index_updates == 0 {
            return Ok(());
        }
        let statement = self.table()[Key::NonIndexUpdate as usize];
        for _ in 0..self.counts.non_index_updates {
            let mut c = [0; 119];
            self.rng.digits(&mut c);
            let id = self.id();
            Self::run(client, statement, &[Value::Bytes(&c), Value::Int(id)])?;
        }
        Ok(())
    }

    fn delete_inserts(&mut self, client: &mut Client<'_>) -> Result<(), DbError> {
        if self.counts.delete_inserts == 0 {
            return Ok(());
        }
        let table = self.table();
        for _ in 0..self.counts.delete_inserts {
            let id = self.id();
            let k = self.id();
            let (mut c, mut pad) = ([0; 119], [0; 59]);
            self.rng.digits(&mut c);
            self.rng.digits(&mut pad);
            Self::run(client, table[Key::Delete as usize], &[Value::Int(id)])?;
            let row = [
                Value::Int(id),
                Value::Int(k),
                Value::Bytes(&c),
                Value::Bytes(&pad),
            ];
            Self::run(client, table[Key::Insert as usize], &row)?;
        }
        Ok(())
    }
}

impl Session for OltpSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let counts = self.counts;
        Self::run(client, self.begin, &[])?;
        self.by_id(client, Key::PointSelect, counts.point_selects)?;
        self.ranges(client, Key::SimpleRange, counts.simple_ranges)?;
        self.ranges(client, Key::SumRange, counts.sum_ranges)?;
        self.ranges(client, Key::OrderRange, counts.order_ranges)?;
        self.ranges(client, Key::DistinctRange, counts.distinct_ranges)?;
        self.by_id(client, Key::IndexUpdate, counts.index_updates)?;
        self.non_index_updates(client)?;
        self.delete_inserts(client)?;
        if let Some(commit) = self.commit {
            client.commit(commit)?;
        }
        Ok(Step::Done(1))
    }
}
