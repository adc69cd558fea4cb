//! The INSERTs of a buffer: prepared once per connection and run record by record (modes `row` and
//! `multi`), or as text for all records of a buffer (mode `bulk`).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::Write;

use super::record::Buffer;
use super::record::Record;
use super::record::hexadecimal;
use super::scenario::Mix;
use super::tables::TABLES;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::suite::bulk::Bulk;
use crate::suite::number;

use ParamType::BigInt;
use ParamType::Binary;
use ParamType::Char;
use ParamType::Int;

const TRAN_TYPES: [ParamType; 9] = [BigInt, Int, Int, Int, BigInt, BigInt, Int, Binary(16), Binary(16)];
/// Bytes of the longest text, unless max_allowed_packet is smaller.
const MAX_STATEMENT_BYTES: usize = 512 * 1024;
/// Bytes of a packet in addition to the statement.
const PACKET_HEADER: usize = 1024;

/// Position, definition and value of a detail row.
type Detail<'a> = [Value<'a>; 3];

fn metric_rows(metrics: &[i64]) -> impl ExactSizeIterator<Item = Detail<'_>> {
    metrics
        .iter()
        .enumerate()
        .map(|(place, value)| detail(place, 3, Value::Int(*value)))
}

fn context_rows(contexts: &[[u8; 32]]) -> impl ExactSizeIterator<Item = Detail<'_>> {
    contexts
        .iter()
        .enumerate()
        .map(|(place, value)| detail(place, 20, Value::Bytes(value)))
}

fn detail(place: usize, definitions: i64, value: Value<'_>) -> Detail<'_> {
    let place = place as i64;
    [Value::Int(place + 1), Value::Int(place % definitions + 1), value]
}

/// An INSERT up to its rows. Where the server assigns the ids of records, it contains none.
fn insert_into(table: usize, server_ids: bool) -> String {
    let (name, columns, _) = TABLES[table];
    let columns = match server_ids {
        true => columns.trim_start_matches("id, "),
        false => columns,
    };
    format!("INSERT INTO {name} ({columns}) VALUES ")
}

/// The prepared statements of one connection.
pub struct Prepared {
    /// The server assigns the ids: statements contain none, and detail rows refer to
    /// LAST_INSERT_ID().
    server_ids: bool,
    /// One row per statement.
    single: bool,
    tran: StatementId,
    /// INSERTs into a detail table by their number of rows.
    metrics: BTreeMap<usize, StatementId>,
    contexts: BTreeMap<usize, StatementId>,
}

impl Prepared {
    /// Prepares the statements of the scenarios of `mix`.
    pub fn open(client: &mut Client<'_>, mix: &Mix, server_ids: bool, single: bool) -> Result<Self, DbError> {
        let mut prepare = |table: usize, rows: usize, id: &str, types: &[ParamType]| {
            let row = format!("({id}{})", vec!["?"; types.len()].join(", "));
            let sql = insert_into(table, server_ids) + &vec![row.as_str(); rows].join(", ");
            client.prepare(&sql, &types.repeat(rows))
        };
        let [metrics, contexts] = sizes(mix, single);
        let tran = prepare(0, 1, "", &TRAN_TYPES[usize::from(server_ids)..])?;
        let mut details = |table: usize, sizes: BTreeSet<usize>, value: ParamType| {
            let (id, types) = match server_ids {
                true => ("LAST_INSERT_ID(), ", vec![Int, Int, value]),
                false => ("", vec![BigInt, Int, Int, value]),
            };
            let mut statements = BTreeMap::new();
            for rows in sizes {
                statements.insert(rows, prepare(table, rows, id, &types)?);
            }
            Ok::<_, DbError>(statements)
        };
        Ok(Self {
            server_ids,
            single,
            tran,
            metrics: details(1, metrics, BigInt)?,
            contexts: details(2, contexts, Char(32))?,
        })
    }

    /// Writes a buffer whose records are numbered from `first`; returns the number of statements.
    pub fn store(&self, client: &mut Client<'_>, buffer: &Buffer, first: i64) -> Result<u64, DbError> {
        let mut values = Vec::new();
        let mut statements = 0;
        for (id, (record, metrics, contexts)) in (first..).zip(buffer.each()) {
            let id = (!self.server_ids).then_some(Value::Int(id));
            let parent = record.parent_corr.as_ref();
            values.clear();
            values.extend(id);
            values.extend(record.numbers.map(Value::Int));
            values.push(Value::Bytes(&record.corr));
            values.push(parent.map_or(Value::Null, |corr| Value::Bytes(corr)));
            client.execute(self.tran, &values)?;
            statements += 1;
            statements += self.details(client, &self.metrics, id, metric_rows(metrics), &mut values)?;
            statements += self.details(client, &self.contexts, id, context_rows(contexts), &mut values)?;
        }
        Ok(statements)
    }

    fn details<'v>(
        &self,
        client: &mut Client<'_>,
        table: &BTreeMap<usize, StatementId>,
        id: Option<Value<'v>>,
        rows: impl ExactSizeIterator<Item = Detail<'v>>,
        values: &mut Vec<Value<'v>>,
    ) -> Result<u64, DbError> {
        let rows_each = if self.single { 1 } else { rows.len() };
        let Some(statement) = table.get(&rows_each) else {
            return Ok(0);
        };
        values.clear();
        let mut statements = 0;
        for (number, row) in (1..).zip(rows) {
            values.extend(id);
            values.extend(row);
            if number % rows_each == 0 {
                client.execute(*statement, values)?;
                values.clear();
                statements += 1;
            }
        }
        Ok(statements)
    }
}

/// The row counts that need a statement, for metrics and for context values.
fn sizes(mix: &Mix, single: bool) -> [BTreeSet<usize>; 2] {
    let size = |rows: usize| if single { rows.min(1) } else { rows };
    let sizes = mix
        .scenarios()
        .map(|scenario| (size(scenario.metrics), size(scenario.contexts)));
    let (metrics, contexts): (BTreeSet<usize>, BTreeSet<usize>) = sizes.unzip();
    [metrics, contexts].map(|mut sizes| {
        sizes.remove(&0);
        sizes
    })
}

/// Statements that one connection prepares.
pub fn handles(mix: &Mix, single: bool) -> usize {
    1 + sizes(mix, single).map(|sizes| sizes.len()).iter().sum::<usize>()
}

/// Builds multi-row INSERTs as text. They are not prepared, because the statements of two buffers
/// differ.
pub struct Texts {
    server_ids: bool,
    /// Distance of two ids of a statement, where the server assigns them.
    step: i64,
    bulk: Bulk,
    row: Vec<u8>,
}

impl Texts {
    /// Reads the limit of a statement and the distance of ids from the server.
    pub fn open(client: &mut Client<'_>, server_ids: bool) -> Result<Self, DbError> {
        let rows = client.rows("SELECT @@max_allowed_packet, @@auto_increment_increment")?;
        let packet = number(&rows, 0).map(|bytes: usize| bytes.saturating_sub(PACKET_HEADER));
        let longest = packet.map_or(MAX_STATEMENT_BYTES, |room| room.min(MAX_STATEMENT_BYTES));
        Ok(Self {
            server_ids,
            step: number(&rows, 1).unwrap_or(1),
            bulk: Bulk::new("", longest),
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
            self.bulk.restart(&insert_into(0, self.server_ids));
            while let Some((record, _, _)) = records.get(done) {
                let id = (!self.server_ids).then_some(first + done as i64);
                self.write_record(id, record);
                if self.bulk.full(self.row.len()).is_some() {
                    break;
                }
                self.bulk.push(&self.row);
                done += 1;
            }
            statements += self.send(client)?;
            let written = || (0..).zip(&records[from..done]);
            let id = first + from as i64;
            let metrics = written()
                .flat_map(|(offset, (_, metrics, _))| metric_rows(metrics).map(move |row| (offset, row)));
            statements += self.details(client, 1, id, metrics)?;
            let contexts = written()
                .flat_map(|(offset, (_, _, contexts))| context_rows(contexts).map(move |row| (offset, row)));
            statements += self.details(client, 2, id, contexts)?;
        }
        Ok(statements)
    }

    fn write_record(&mut self, id: Option<i64>, record: &Record) {
        self.row.clear();
        self.row.push(b'(');
        for number in id.into_iter().chain(record.numbers) {
            // Writing to a Vec cannot fail, here and below.
            drop(write!(self.row, "{number},"));
        }
        let corr = hexadecimal(&record.corr);
        let parent = record.parent_corr.as_ref().map(hexadecimal);
        let pieces = match &parent {
            None => [b"x'".as_slice(), &corr, b"',NULL", b"", b")"],
            Some(parent) => [b"x'".as_slice(), &corr, b"',x'", parent, b"')"],
        };
        for piece in pieces {
            self.row.extend_from_slice(piece);
        }
    }

    /// `rows` have the distance of their record to the one with this id, the first of its INSERT.
    fn details<'v>(
        &mut self,
        client: &mut Client<'_>,
        table: usize,
        id: i64,
        rows: impl Iterator<Item = (i64, Detail<'v>)>,
    ) -> Result<u64, DbError> {
        let mut statements = 0;
        self.bulk.restart(&insert_into(table, self.server_ids));
        for (offset, values) in rows {
            self.row.clear();
            drop(match self.server_ids {
                true => write!(self.row, "(LAST_INSERT_ID()+{}", offset * self.step),
                false => write!(self.row, "({}", id + offset),
            });
            for value in values {
                match value {
                    Value::Int(number) => drop(write!(self.row, ",{number}")),
                    Value::Bytes(digits) => {
                        for piece in [b",'".as_slice(), digits, b"'"] {
                            self.row.extend_from_slice(piece);
                        }
                    }
                    Value::Null => self.row.extend_from_slice(b",NULL"),
                }
            }
            self.row.push(b')');
            if self.bulk.full(self.row.len()).is_some() {
                statements += self.send(client)?;
            }
            self.bulk.push(&self.row);
        }
        Ok(statements + self.send(client)?)
    }

    /// Sends the rows so far, if any; returns the number of statements.
    fn send(&mut self, client: &mut Client<'_>) -> Result<u64, DbError> {
        let Some(text) = self.bulk.rest() else {
            return Ok(0);
        };
        client.query(text)?;
        self.bulk.clear();
        Ok(1)
    }
}
