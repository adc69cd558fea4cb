//! One writer: takes a buffer and stores it as one database transaction, record by record with its detail rows.

use std::sync::Arc;

use super::queue::Queue;
use super::record::Buffer;
use super::record::Scenario;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::workload::Session;
use crate::workload::Step;

use ParamType::BigInt;
use ParamType::Binary;
use ParamType::Char;
use ParamType::Int;

/// A writer numbers its records from `thread << 40`, so that writers do not meet at one edge of the primary key.
const ID_BITS: u32 = 40;

const TRAN: &str = "INSERT INTO arm_tran (id, def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr) \
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
const TRAN_TYPES: [ParamType; 9] = [BigInt, Int, Int, Int, BigInt, BigInt, Int, Binary(16), Binary(16)];

/// Statements and position of one writer.
pub struct Writer {
    queue: Arc<Queue>,
    scenario: Scenario,
    next_id: i64,
    tran: StatementId,
    metrics: Option<StatementId>,
    contexts: Option<StatementId>,
    commit: StatementId,
    /// Taken, not yet committed: an ignored error writes it again.
    buffer: Option<Buffer>,
}

impl Writer {
    /// Prepares the statements of the scenario and finds the first free id of this thread.
    pub fn open(
        queue: Arc<Queue>,
        scenario: Scenario,
        thread: usize,
        client: &mut Client<'_>,
    ) -> Result<Self, DbError> {
        let first = (thread as i64) << ID_BITS;
        let last = first | ((1 << ID_BITS) - 1);
        let used = client.rows(&format!(
            "SELECT MAX(id) FROM arm_tran WHERE id BETWEEN {first} AND {last}"
        ))?;
        let used = used.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        let detail = |client: &mut Client<'_>, table: &str, value: ParamType, rows: usize| {
            let row = [BigInt, Int, Int, value];
            let sql = format!(
                "INSERT INTO {table} VALUES {}",
                vec!["(?, ?, ?, ?)"; rows].join(", ")
            );
            (rows > 0)
                .then(|| client.prepare(&sql, &row.repeat(rows)))
                .transpose()
        };
        let writer = Self {
            queue,
            scenario,
            next_id: used.unwrap_or(first) + 1,
            tran: client.prepare(TRAN, &TRAN_TYPES)?,
            metrics: detail(
                client,
                "arm_metric (tran_id, pos, mdef, val)",
                BigInt,
                scenario.metrics,
            )?,
            contexts: detail(
                client,
                "arm_ctx (tran_id, pos, pdef, val)",
                Char(32),
                scenario.contexts,
            )?,
            commit: client.prepare("COMMIT", &[])?,
            buffer: None,
        };
        // After the SELECT, which would otherwise open a transaction that lasts until the first COMMIT.
        client.on_connect("SET autocommit=0")?;
        Ok(writer)
    }

    fn store(&mut self, client: &mut Client<'_>, buffer: &Buffer) -> Result<(), DbError> {
        let (metrics, contexts) = (self.scenario.metrics, self.scenario.contexts);
        let mut values = Vec::with_capacity(4 * metrics.max(contexts).max(3));
        for (position, record) in buffer.records.iter().enumerate() {
            let id = Value::Int(self.next_id);
            self.next_id += 1;
            values.clear();
            values.extend([
                id,
                Value::Int(record.def_id),
                Value::Int(record.app_id),
                Value::Int(record.user_id),
                Value::Int(record.start_us),
                Value::Int(record.resp_ns),
                Value::Int(record.status),
                Value::Bytes(&record.corr),
                record
                    .parent_corr
                    .as_ref()
                    .map_or(Value::Null, |corr| Value::Bytes(corr)),
            ]);
            client.execute(self.tran, &values)?;
            if let Some(statement) = self.metrics {
                let rows = buffer.metrics[position * metrics..][..metrics].iter();
                values.clear();
                for (number, row) in (1..).zip(rows) {
                    values.extend([id, Value::Int(number), Value::Int(number), Value::Int(*row)]);
                }
                client.execute(statement, &values)?;
            }
            if let Some(statement) = self.contexts {
                let rows = buffer.contexts[position * contexts..][..contexts].iter();
                values.clear();
                for (number, row) in (1..).zip(rows) {
                    values.extend([id, Value::Int(number), Value::Int(number), Value::Bytes(row)]);
                }
                client.execute(statement, &values)?;
            }
        }
        client.commit(self.commit)
    }
}

impl Session for Writer {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let buffer = match self.buffer.take() {
            Some(again) => again,
            None => match self.queue.pop() {
                Some(taken) => {
                    client.start(0);
                    taken
                }
                None => return Ok(Step::Exhausted),
            },
        };
        let stored = self.store(client, &buffer);
        if let Err(error) = stored {
            self.buffer = Some(buffer);
            return Err(error);
        }
        let records = buffer.records.len() as u64;
        self.queue.give_back(buffer);
        Ok(Step::Done(records))
    }
}
