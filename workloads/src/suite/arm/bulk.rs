//! The mode `bulk`: writes a whole buffer as text in multi-row INSERTs of at most 512 KiB. They are
//! not prepared, because the statements of two buffers differ.

use std::io::Write;
use std::str;

use super::record::Buffer;
use super::record::Record;
use super::statements::context_definition;
use super::statements::metric_definition;
use crate::driver::DbError;
use crate::engine::client::Client;

/// Bytes of the longest statement, unless max_allowed_packet is smaller.
const MAX_STATEMENT_BYTES: usize = 512 * 1024;
/// Bytes of a packet in addition to the statement.
const PACKET_HEADER: usize = 1024;

/// Builds the statements of one connection.
pub struct Bulk {
    server_ids: bool,
    /// Distance of two ids of a statement, where the server assigns them.
    step: i64,
    longest: usize,
    text: Vec<u8>,
    row: Vec<u8>,
}

impl Bulk {
    /// Reads the limit of a statement and the distance of ids from the server.
    pub fn open(client: &mut Client<'_>, server_ids: bool) -> Result<Self, DbError> {
        let rows = client.rows("SELECT @@max_allowed_packet, @@auto_increment_increment")?;
        let number = |column: usize| -> Option<i64> { rows.first()?.get(column)?.as_deref()?.parse().ok() };
        let packet = number(0).and_then(|bytes| usize::try_from(bytes).ok());
        let room = packet.map_or(MAX_STATEMENT_BYTES, |bytes| bytes.saturating_sub(PACKET_HEADER));
        Ok(Self {
            server_ids,
            step: number(1).unwrap_or(1),
            longest: room.min(MAX_STATEMENT_BYTES),
            text: Vec::new(),
            row: Vec::new(),
        })
    }

    /// Writes a buffer whose records are numbered from `first`; returns the number of statements.
    ///
    /// The detail rows follow the INSERT of their records into `arm_tran`, so that they can refer
    /// to LAST_INSERT_ID(), the first id of that statement. InnoDB assigns consecutive ids to the
    /// rows of an INSERT with a known number of rows in every innodb_autoinc_lock_mode.
    pub fn store(&mut self, client: &mut Client<'_>, buffer: &Buffer, first: i64) -> Result<u64, DbError> {
        let records: Vec<_> = buffer.each().collect();
        let (mut done, mut statements) = (0, 0);
        while done < records.len() {
            let from = done;
            self.begin(if self.server_ids {
                "INSERT INTO arm_tran (def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr) VALUES "
            } else {
                "INSERT INTO arm_tran (id, def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr) VALUES "
            });
            while let Some((record, _, _)) = records.get(done) {
                self.row.clear();
                let id = (!self.server_ids).then_some(first + done as i64);
                write_record(&mut self.row, id, record);
                if !self.append() {
                    break;
                }
                done += 1;
            }
            client.query(&self.text)?;
            statements += 1;
            let written = || (0..).zip(&records[from..done]);
            let reference = |offset: i64| first + from as i64 + offset;

            let metrics = written().flat_map(|(offset, (_, metrics, _))| {
                (1..)
                    .zip(*metrics)
                    .map(move |(position, value)| (offset, position, value))
            });
            statements += self.details(
                client,
                "INSERT INTO arm_metric (tran_id, pos, mdef, val) VALUES ",
                metrics,
                reference,
                |row, position, value| drop(write!(row, "{},{value})", metric_definition(position))),
            )?;
            let contexts = written().flat_map(|(offset, (_, _, contexts))| {
                (1..)
                    .zip(*contexts)
                    .map(move |(position, value)| (offset, position, value))
            });
            statements += self.details(
                client,
                "INSERT INTO arm_ctx (tran_id, pos, pdef, val) VALUES ",
                contexts,
                reference,
                |row, position, value| {
                    let text = str::from_utf8(value).unwrap_or_default();
                    drop(write!(row, "{},'{text}')", context_definition(position)));
                },
            )?;
        }
        Ok(statements)
    }

    fn details<T>(
        &mut self,
        client: &mut Client<'_>,
        head: &str,
        rows: impl Iterator<Item = (i64, i64, T)>,
        reference: impl Fn(i64) -> i64,
        finish: impl Fn(&mut Vec<u8>, i64, T),
    ) -> Result<u64, DbError> {
        let mut statements = 0;
        self.begin(head);
        let empty = self.text.len();
        for (offset, position, value) in rows {
            self.row.clear();
            // Writing to a Vec cannot fail.
            drop(if self.server_ids {
                write!(self.row, "(LAST_INSERT_ID()+{},{position},", offset * self.step)
            } else {
                write!(self.row, "({},{position},", reference(offset))
            });
            finish(&mut self.row, position, value);
            if !self.append() {
                client.query(&self.text)?;
                statements += 1;
                self.begin(head);
                self.append();
            }
        }
        if self.text.len() > empty {
            client.query(&self.text)?;
            statements += 1;
        }
        Ok(statements)
    }

    fn begin(&mut self, head: &str) {
        self.text.clear();
        self.text.extend_from_slice(head.as_bytes());
    }

    /// Adds the row to the statement; false if the statement is full. The first row always fits: a
    /// packet is at least 1 KiB.
    fn append(&mut self) -> bool {
        let first = self.text.ends_with(b"VALUES ");
        if !first && self.text.len() + 1 + self.row.len() > self.longest {
            return false;
        }
        if !first {
            self.text.push(b',');
        }
        self.text.extend_from_slice(&self.row);
        true
    }
}

fn write_record(row: &mut Vec<u8>, id: Option<i64>, record: &Record) {
    row.push(b'(');
    if let Some(id) = id {
        drop(write!(row, "{id},"));
    }
    drop(write!(
        row,
        "{},{},{},{},{},{},x'",
        record.def_id, record.app_id, record.user_id, record.start_us, record.resp_ns, record.status
    ));
    hexadecimal(row, &record.corr);
    match &record.parent_corr {
        None => row.extend_from_slice(b"',NULL)"),
        Some(parent) => {
            row.extend_from_slice(b"',x'");
            hexadecimal(row, parent);
            row.extend_from_slice(b"')");
        }
    }
}

fn hexadecimal(row: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        drop(write!(row, "{byte:02x}"));
    }
}
