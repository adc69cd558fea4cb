//! The sessions of the connections that insert, delete and create the indexes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::pair::Side;
use super::rows;
use super::rows::Row;
use super::schedule::Schedule;
use super::shared::CREATE_INDEX;
use super::shared::DELETE;
use super::shared::INSERT;
use super::shared::Shared;
use super::step::Step;
use super::table::alter;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::engine::load;
use crate::engine::load::Session;
use crate::random::Rng;

/// DELETEs after which the smallest id is read again.
const DELETES_PER_MIN: u64 = 1000;

/// The remaining statements of one connection, and when each is due.
struct Work {
    shared: Arc<Shared>,
    client: usize,
    side: Side,
    kind: usize,
    schedule: Option<Schedule>,
    left: Option<u64>,
}

impl Work {
    fn new(shared: Arc<Shared>, client: usize, side: Side) -> Self {
        let step = shared.step;
        let schedule = match step {
            Step::Query { rate, .. } => Some(Schedule::new(
                step.rows_per_commit(),
                rate,
                client,
                shared.clients,
            )),
            _ => None,
        };
        Self {
            client,
            side,
            kind: match side {
                Side::Insert => INSERT,
                Side::Delete => DELETE,
            },
            schedule,
            left: shared.rows,
            shared,
        }
    }

    /// Waits until the next statement may run and returns its number of rows; none at the end of
    /// the rows or of the phase.
    fn next(&mut self, client: &mut Client<'_>) -> Option<u64> {
        let rows = self
            .shared
            .step
            .rows_per_commit()
            .min(self.left.unwrap_or(u64::MAX));
        if rows == 0 {
            return None;
        }
        let due = match &mut self.schedule {
            Some(schedule) => {
                let due = schedule.due(self.shared.phase.load(Relaxed));
                if !client.pause_until(due) {
                    return None;
                }
                Some(due)
            }
            None => None,
        };
        if self.shared.step.connections() > 1 && !self.shared.pairs[self.client].wait_turn(self.side) {
            return None;
        }
        match due {
            // The latency of a late statement counts from its due time.
            Some(due) => client.start_at(self.kind, due),
            None => client.start(self.kind),
        }
        Some(rows)
    }

    fn done(&mut self, rows: u64) {
        self.left = self.left.map(|left| left - rows);
        if let Some(schedule) = &mut self.schedule {
            schedule.advance();
        }
        self.shared.pairs[self.client].done(self.side);
    }

    /// Rows of a statement, and of a smaller last one where the rows do not divide.
    fn sizes(&self) -> (u64, Option<u64>) {
        let usual = self.shared.step.rows_per_commit();
        let rest = self.left.map_or(0, |rows| rows % usual);
        (usual, (rest > 0).then_some(rest))
    }
}

/// A statement for the usual number of rows, and one for the remainder.
struct Statements {
    usual: (u64, StatementId),
    rest: Option<(u64, StatementId)>,
}

impl Statements {
    fn prepare(
        work: &Work,
        mut statement: impl FnMut(u64) -> Result<StatementId, DbError>,
    ) -> Result<Self, DbError> {
        let (usual, rest) = work.sizes();
        Ok(Self {
            usual: (usual, statement(usual)?),
            rest: rest.map(|rest| Ok((rest, statement(rest)?))).transpose()?,
        })
    }

    fn of(&self, rows: u64) -> StatementId {
        match self.rest {
            Some((rest, statement)) if rest == rows => statement,
            _ => self.usual.1,
        }
    }
}

/// The connection that inserts.
pub struct Inserter {
    work: Work,
    statements: Statements,
    rng: Rng,
    /// Not yet committed: inserted again after an ignored error.
    rows: Vec<Row>,
}

impl Inserter {
    /// Prepares the INSERTs.
    pub fn open(shared: Arc<Shared>, number: usize, client: &mut Client<'_>) -> Result<Self, DbError> {
        let rng = shared.rng(number, 0);
        let work = Work::new(shared, number, Side::Insert);
        let statements = Statements::prepare(&work, |rows| {
            let (sql, types) = rows::insert(&work.shared.table(number).name, rows as usize);
            client.prepare(&sql, &types)
        })?;
        Ok(Self {
            work,
            statements,
            rng,
            rows: Vec::new(),
        })
    }
}

impl Session for Inserter {
    fn event(&mut self, client: &mut Client<'_>) -> Result<load::Step, DbError> {
        if self.rows.is_empty() {
            let Some(rows) = self.work.next(client) else {
                return Ok(load::Step::Exhausted);
            };
            self.rows.extend((0..rows).map(|_| Row::draw(&mut self.rng)));
        }
        let values: Vec<Value<'_>> = self.rows.iter().flat_map(Row::values).collect();
        let rows = self.rows.len() as u64;
        client.execute(self.statements.of(rows), &values)?;
        client.committed();
        self.rows.clear();
        let shared = &self.work.shared;
        shared.inserted.fetch_add(rows, Relaxed);
        shared
            .table(self.work.client)
            .highest
            .fetch_add(rows as i64, Relaxed);
        let counts = matches!(shared.step, Step::Load | Step::Churn { .. });
        self.work.done(rows);
        Ok(load::Step::Done(if counts { rows } else { 0 }))
    }
}

/// The connection that deletes.
pub struct Deleter {
    work: Work,
    statements: Statements,
    smallest: StatementId,
    deletes: u64,
    /// Not yet committed: deleted again after an ignored error.
    rows: Option<u64>,
}

impl Deleter {
    /// Prepares the DELETEs and reads the smallest id.
    pub fn open(shared: Arc<Shared>, number: usize, client: &mut Client<'_>) -> Result<Self, DbError> {
        shared.read_span(number, client)?;
        let work = Work::new(shared, number, Side::Delete);
        let table = work.shared.table(number).name.clone();
        let statements = Statements::prepare(&work, |rows| {
            let sql =
                format!("DELETE FROM {table} WHERE transactionid >= ? ORDER BY transactionid LIMIT {rows}");
            client.prepare(&sql, &[ParamType::BigInt])
        })?;
        Ok(Self {
            work,
            statements,
            smallest: client.prepare(&format!("SELECT MIN(transactionid) FROM {table}"), &[])?,
            deletes: 0,
            rows: None,
        })
    }
}

impl Session for Deleter {
    fn event(&mut self, client: &mut Client<'_>) -> Result<load::Step, DbError> {
        let rows = match self.rows {
            Some(again) => again,
            None => match self.work.next(client) {
                Some(rows) => *self.rows.insert(rows),
                None => return Ok(load::Step::Exhausted),
            },
        };
        let shared = &self.work.shared;
        let table = shared.table(self.work.client);
        if self.deletes > 0 && self.deletes.is_multiple_of(DELETES_PER_MIN) {
            let result = client.fetch(self.smallest, &[])?;
            if let Some(smallest) = result
                .first()
                .and_then(|row| row.first()?.as_deref()?.parse().ok())
            {
                table.lowest.store(smallest, Relaxed);
            }
        }
        let from = Value::Int(table.lowest.load(Relaxed));
        client.execute(self.statements.of(rows), &[from])?;
        client.committed();
        self.rows = None;
        self.deletes += 1;
        // Added, not stored: with one table for all, other clients delete from the same end.
        table.lowest.fetch_add(rows as i64, Relaxed);
        shared.deleted.fetch_add(rows, Relaxed);
        self.work.done(rows);
        Ok(load::Step::Done(0))
    }
}

/// Inserts its rows, then adds all indexes of one table.
pub struct Indexer {
    inserter: Inserter,
    alter: String,
    rows: u64,
    done: bool,
}

impl Indexer {
    /// Counts the rows of the new indexes.
    pub fn open(shared: Arc<Shared>, number: usize, client: &mut Client<'_>) -> Result<Self, DbError> {
        let table = shared.table(number).name.clone();
        let rows = client.rows(&format!("SELECT COUNT(*) FROM {table}"))?;
        let rows: Option<u64> = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        Ok(Self {
            rows: rows.unwrap_or(0) + shared.rows.unwrap_or(0),
            alter: alter(&table),
            inserter: Inserter::open(shared, number, client)?,
            done: false,
        })
    }
}

impl Session for Indexer {
    fn event(&mut self, client: &mut Client<'_>) -> Result<load::Step, DbError> {
        match self.inserter.event(client)? {
            load::Step::Exhausted if !self.done => {
                client.start(CREATE_INDEX);
                client.query(self.alter.as_bytes())?;
                self.done = true;
                Ok(load::Step::Done(self.rows))
            }
            other => Ok(other),
        }
    }
}
