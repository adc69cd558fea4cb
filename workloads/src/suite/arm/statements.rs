//! The statements of the modes `row` and `multi`: prepared once per connection, run record by
//! record.

use std::collections::BTreeSet;

use super::mix::Mix;
use super::record::Buffer;
use super::record::Record;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;

use ParamType::BigInt;
use ParamType::Binary;
use ParamType::Char;
use ParamType::Int;

const TRAN_TYPES: [ParamType; 9] = [BigInt, Int, Int, Int, BigInt, BigInt, Int, Binary(16), Binary(16)];

/// The statements of one connection.
pub struct Statements {
    /// The server assigns the ids: statements contain none, and detail rows refer to
    /// LAST_INSERT_ID().
    server_ids: bool,
    /// One row per statement.
    single: bool,
    tran: StatementId,
    metrics: Detail,
    contexts: Detail,
}

/// INSERTs into one detail table: the one with n rows at index n.
struct Detail(Vec<Option<StatementId>>);

impl Statements {
    /// Prepares the statements of the scenarios of `mix`.
    pub fn prepare(
        client: &mut Client<'_>,
        mix: &Mix,
        server_ids: bool,
        single: bool,
    ) -> Result<Self, DbError> {
        let columns = "def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr";
        let (sql, types) = if server_ids {
            let sql = format!("INSERT INTO arm_tran ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
            (sql, &TRAN_TYPES[1..])
        } else {
            let sql = format!("INSERT INTO arm_tran (id, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
            (sql, &TRAN_TYPES[..])
        };
        let tran = client.prepare(&sql, types)?;
        let mut detail = |table: &str, value: ParamType, rows: BTreeSet<usize>| {
            let (row, types) = if server_ids {
                ("(LAST_INSERT_ID(), ?, ?, ?)", vec![Int, Int, value])
            } else {
                ("(?, ?, ?, ?)", vec![BigInt, Int, Int, value])
            };
            let mut statements = vec![None; rows.last().map_or(0, |largest| largest + 1)];
            for count in rows {
                let sql = format!("INSERT INTO {table} VALUES {}", vec![row; count].join(", "));
                statements[count] = Some(client.prepare(&sql, &types.repeat(count))?);
            }
            Ok(Detail(statements))
        };
        let (metrics, contexts) = sizes(mix, single);
        Ok(Self {
            server_ids,
            single,
            tran,
            metrics: detail("arm_metric (tran_id, pos, mdef, val)", BigInt, metrics)?,
            contexts: detail("arm_ctx (tran_id, pos, pdef, val)", Char(32), contexts)?,
        })
    }

    /// Writes a buffer whose records are numbered from `first`; returns the number of statements.
    pub fn store(&self, client: &mut Client<'_>, buffer: &Buffer, first: i64) -> Result<u64, DbError> {
        let mut values = Vec::new();
        let mut statements = 0;
        for (id, (record, metrics, contexts)) in (first..).zip(buffer.each()) {
            values.clear();
            if !self.server_ids {
                values.push(Value::Int(id));
            }
            values.extend(columns(record));
            client.execute(self.tran, &values)?;
            statements += 1;
            let rows = (1..).zip(metrics).map(|(position, row)| {
                [
                    Value::Int(position),
                    Value::Int(metric_definition(position)),
                    Value::Int(*row),
                ]
            });
            let batch = self.batch(&self.metrics, id, metrics.len());
            statements += batch.store(client, rows, &mut values)?;
            let rows = (1..).zip(contexts).map(|(position, row)| {
                [
                    Value::Int(position),
                    Value::Int(context_definition(position)),
                    Value::Bytes(row.as_slice()),
                ]
            });
            let batch = self.batch(&self.contexts, id, contexts.len());
            statements += batch.store(client, rows, &mut values)?;
        }
        Ok(statements)
    }

    fn batch(&self, table: &Detail, id: i64, rows: usize) -> Batch {
        let rows_each = if self.single { rows.min(1) } else { rows };
        Batch {
            statement: table.0.get(rows_each).copied().flatten(),
            id: (!self.server_ids).then_some(id),
            rows_each,
        }
    }
}

/// The row counts that need a statement, for metrics and for context values.
fn sizes(mix: &Mix, single: bool) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let size = |rows: usize| if single { rows.min(1) } else { rows };
    let metrics = mix.scenarios().map(|scenario| size(scenario.metrics));
    let contexts = mix.scenarios().map(|scenario| size(scenario.contexts));
    let any = |rows: &usize| *rows > 0;
    (metrics.filter(any).collect(), contexts.filter(any).collect())
}

/// Statements that one connection prepares.
pub fn handles(mix: &Mix, single: bool) -> usize {
    let (metrics, contexts) = sizes(mix, single);
    1 + metrics.len() + contexts.len()
}

/// The rows of one record in one detail table.
struct Batch {
    statement: Option<StatementId>,
    id: Option<i64>,
    rows_each: usize,
}

impl Batch {
    fn store<'v>(
        &self,
        client: &mut Client<'_>,
        rows: impl Iterator<Item = [Value<'v>; 3]>,
        values: &mut Vec<Value<'v>>,
    ) -> Result<u64, DbError> {
        let Some(statement) = self.statement else {
            return Ok(0);
        };
        values.clear();
        let mut statements = 0;
        for (number, row) in (1..).zip(rows) {
            values.extend(self.id.map(Value::Int));
            values.extend(row);
            if number % self.rows_each == 0 {
                client.execute(statement, values)?;
                values.clear();
                statements += 1;
            }
        }
        Ok(statements)
    }
}

/// The definition that the metric at this position refers to.
pub const fn metric_definition(position: i64) -> i64 {
    1 + (position - 1) % 3
}

/// The definition that the context value at this position refers to.
pub const fn context_definition(position: i64) -> i64 {
    1 + (position - 1) % 20
}

fn columns(record: &Record) -> [Value<'_>; 8] {
    let parent = record.parent_corr.as_ref();
    [
        Value::Int(record.def_id),
        Value::Int(record.app_id),
        Value::Int(record.user_id),
        Value::Int(record.start_us),
        Value::Int(record.resp_ns),
        Value::Int(record.status),
        Value::Bytes(&record.corr),
        parent.map_or(Value::Null, |corr| Value::Bytes(corr)),
    ]
}
