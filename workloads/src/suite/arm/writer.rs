//! A writer: takes a buffer and stores it as one database transaction.

use std::sync::Arc;

use super::bulk::Bulk;
use super::record::Buffer;
use super::shared::Mode;
use super::shared::Shared;
use super::statements::Statements;
use crate::driver::DbError;
use crate::driver::StatementId;
use crate::engine::client::Client;
use crate::engine::load::Session;
use crate::engine::load::Step;

/// A writer numbers its records from `thread << 40`, so that writers insert at different places of
/// the primary key.
const ID_BITS: u32 = 40;

enum Statement {
    Prepared(Statements),
    Bulk(Bulk),
}

/// An uncommitted buffer. After an ignored error it is written again with the same ids.
struct Taken {
    buffer: Buffer,
    first: i64,
    /// The connection was lost, perhaps after the server committed.
    in_doubt: bool,
}

/// Statements and position of one writer.
pub struct Writer {
    shared: Arc<Shared>,
    next_id: i64,
    statement: Statement,
    commit: StatementId,
    taken: Option<Taken>,
}

impl Writer {
    /// Prepares the statements of the mix and reads the first free id of this thread.
    pub fn open(shared: Arc<Shared>, thread: usize, client: &mut Client<'_>) -> Result<Self, DbError> {
        let first = (thread as i64) << ID_BITS;
        let last = first | ((1 << ID_BITS) - 1);
        let used = client.rows(&format!(
            "SELECT MAX(id) FROM arm_tran WHERE id BETWEEN {first} AND {last}"
        ))?;
        let used: Option<i64> = used.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        let server_ids = shared.server_ids;
        let statement = match shared.mode {
            Mode::Bulk => Statement::Bulk(Bulk::open(client, server_ids)?),
            mode => {
                let single = mode == Mode::Row;
                Statement::Prepared(Statements::prepare(client, &shared.mix, server_ids, single)?)
            }
        };
        let commit = client.prepare("COMMIT", &[])?;
        // After the SELECT, which would otherwise start a transaction until the first COMMIT.
        client.on_connect("SET autocommit=0")?;
        Ok(Self {
            shared,
            next_id: used.unwrap_or(first) + 1,
            statement,
            commit,
            taken: None,
        })
    }

    /// Writes and commits; returns the number of statements.
    fn store(&mut self, client: &mut Client<'_>, taken: &Taken) -> Result<u64, DbError> {
        if taken.in_doubt && self.committed(client, taken.first)? {
            client.committed();
            return Ok(0);
        }
        let statements = match &mut self.statement {
            Statement::Prepared(statements) => statements.store(client, &taken.buffer, taken.first)?,
            Statement::Bulk(bulk) => bulk.store(client, &taken.buffer, taken.first)?,
        };
        client.commit(self.commit)?;
        Ok(statements + 1)
    }

    /// True if a buffer whose COMMIT got no reply is in the tables. Not known with ids of the
    /// server.
    fn committed(&self, client: &mut Client<'_>, first: i64) -> Result<bool, DbError> {
        if self.shared.server_ids {
            return Ok(false);
        }
        let rows = client.rows(&format!("SELECT id FROM arm_tran WHERE id = {first}"))?;
        Ok(!rows.is_empty())
    }
}

impl Session for Writer {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let taken = match self.taken.take() {
            Some(again) => again,
            None => match self.shared.queue.pop() {
                Some(buffer) => {
                    client.start(0);
                    let first = self.next_id;
                    self.next_id += buffer.records.len() as i64;
                    Taken {
                        buffer,
                        first,
                        in_doubt: false,
                    }
                }
                None => return Ok(Step::Exhausted),
            },
        };
        match self.store(client, &taken) {
            Ok(statements) => {
                let records = taken.buffer.records.len() as u64;
                self.shared
                    .tally
                    .committed(records, taken.buffer.rows() as u64, statements);
                self.shared.queue.give_back(taken.buffer);
                Ok(Step::Done(records))
            }
            Err(error) => {
                self.taken = Some(Taken {
                    in_doubt: taken.in_doubt || error.connection_lost(),
                    ..taken
                });
                Err(error)
            }
        }
    }
}
