//! The reply to one command: OK, an error, one or several result sets, or a prepared statement. Fed with bytes as they come;
//! rows that nobody wants are stepped over by their length.

use super::Dialect;
use super::MOST;
use super::Malformed;
use super::decode::Decoder;
use super::row::Column;
use super::row::binary_row;
use super::row::text_row;
use crate::driver::Effect;
use crate::driver::Failure;
use crate::driver::Row;
use crate::driver::mysql::effect_of;

/// SERVER_MORE_RESULTS_EXISTS of mysql_com.h.
const MORE_RESULTS: u16 = 8;
const HEADER: usize = 4;

/// To what command the reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// COM_QUERY: rows are text.
    Query,
    /// COM_STMT_EXECUTE: rows are binary.
    Execute,
    /// COM_STMT_PREPARE.
    Prepare,
}

/// What a whole reply said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The statement did this.
    Done(Effect),
    /// The server refused it.
    Failed(Failure),
    /// The statement's number and how many parameters it takes.
    Prepared(u32, u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// OK, an error, or the number of columns.
    First,
    /// So many descriptions of columns or parameters.
    Columns(u64),
    /// The EOF after the columns.
    ColumnsEnd,
    Rows,
    /// What is left of a statement's descriptions and the EOFs between them.
    Descriptions(u32),
    Done,
}

/// A reply that is being read.
#[derive(Debug)]
pub struct Reply {
    dialect: Dialect,
    command: Command,
    state: State,
    sequence: u8,
    /// Bytes of the present packet to step over.
    skip: usize,
    /// The packet before was full: this one goes on with its payload.
    goes_on: bool,
    /// The payload of full packets so far.
    long: Vec<u8>,
    columns: Vec<Column>,
    read: bool,
    affected: u64,
    said: Option<Said>,
}

impl Reply {
    /// To a command that has just been sent, whose last packet had this number.
    pub fn new(dialect: Dialect, command: Command, sent: u8) -> Self {
        Self {
            dialect,
            command,
            state: State::First,
            sequence: sent.wrapping_add(1),
            skip: 0,
            goes_on: false,
            long: Vec::new(),
            columns: Vec::new(),
            read: false,
            affected: 0,
            said: None,
        }
    }

    /// What was said, once the reply is whole.
    pub fn said(&mut self) -> Option<Said> {
        if self.state == State::Done {
            self.said.take()
        } else {
            None
        }
    }

    /// True once the reply is whole.
    pub fn is_whole(&self) -> bool {
        self.state == State::Done
    }

    /// Takes bytes and gives how many were used; the others come again with the next ones. Rows are appended where they are wanted.
    ///
    /// # Errors
    /// When the bytes cannot be a reply: the connection is of no use then.
    pub fn feed(&mut self, bytes: &[u8], mut rows: Option<&mut Vec<Row>>) -> Result<usize, Malformed> {
        let mut at = 0;
        while self.state != State::Done {
            let rest = &bytes[at..];
            if self.skip > 0 {
                let stepped = self.skip.min(rest.len());
                self.skip -= stepped;
                at += stepped;
                if self.skip > 0 {
                    break;
                }
                continue;
            }
            let Some(([a, b, c, sequence], payload)) = rest.split_first_chunk::<HEADER>() else {
                break;
            };
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            if self.may_step_over(length, payload.first(), rows.is_some()) {
                self.count(*sequence)?;
                self.skip = length;
                self.goes_on = length == MOST;
                at += HEADER;
                if !self.goes_on
                    && let State::Columns(left) = self.state
                {
                    self.state = self.after_column(left);
                }
                continue;
            }
            let Some(payload) = payload.get(..length) else {
                break;
            };
            self.count(*sequence)?;
            at += HEADER + length;
            if length == MOST || self.goes_on {
                self.long.extend_from_slice(payload);
                self.goes_on = length == MOST;
                if !self.goes_on {
                    let whole = std::mem::take(&mut self.long);
                    self.packet(&whole, rows.as_deref_mut())?;
                }
                continue;
            }
            self.packet(payload, rows.as_deref_mut())?;
        }
        Ok(at)
    }

    /// True for a packet whose content nobody wants: a row, the rest of one, or a column's description.
    fn may_step_over(&self, length: usize, first: Option<&u8>, wanted: bool) -> bool {
        if wanted || !self.long.is_empty() {
            return false;
        }
        match (self.state, first) {
            (State::Columns(_) | State::Rows, _) if self.goes_on => true,
            (State::Columns(_), Some(first)) => *first != 0xff,
            // A row whose first value has 16 MB or more begins with 0xfe as well, and its packet is full.
            (State::Rows, Some(first)) => *first != 0xff && !(*first == 0xfe && length < MOST) && length > 0,
            _ => false,
        }
    }

    fn count(&mut self, sequence: u8) -> Result<(), Malformed> {
        if sequence != self.sequence {
            return Err(Malformed("packets of the server are out of order"));
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(())
    }

    fn packet(&mut self, payload: &[u8], rows: Option<&mut Vec<Row>>) -> Result<(), Malformed> {
        let first = *payload
            .first()
            .ok_or(Malformed("a packet of the server is empty"))?;
        let mut decoder = Decoder(&payload[1..]);
        match (self.state, first) {
            (_, 0xff) => self.end(Said::Failed(failure(decoder)?)),
            (State::First, 0) if self.command == Command::Prepare => {
                let statement = decoder.u32()?;
                let (columns, params) = (decoder.u16()?, decoder.u16()?);
                let eof = |count: u16| u32::from(count > 0 && !self.dialect.deprecate_eof);
                let packets = u32::from(columns) + eof(columns) + u32::from(params) + eof(params);
                self.said = Some(Said::Prepared(statement, params));
                self.state = if packets > 0 {
                    State::Descriptions(packets)
                } else {
                    State::Done
                };
            }
            (State::First, 0) => self.ok(decoder)?,
            (State::First, 0xfb) => {
                return Err(Malformed(
                    "the server asks for a local file, which multiplexed connections refuse",
                ));
            }
            (State::First, _) => {
                let count = Decoder(payload).length()?;
                if count == 0 || count > u64::from(u16::MAX) || self.command == Command::Prepare {
                    return Err(Malformed("the server announces an impossible number of columns"));
                }
                self.columns.clear();
                self.state = State::Columns(count);
            }
            (State::Columns(left), _) => {
                if rows.is_some() {
                    self.columns.push(Column::read(payload)?);
                }
                self.state = self.after_column(left);
            }
            (State::ColumnsEnd, 0xfe) if payload.len() < 9 => self.state = State::Rows,
            (State::ColumnsEnd, _) => return Err(Malformed("the server's columns do not end")),
            (State::Rows, 0xfe) if payload.len() < MOST && self.dialect.deprecate_eof => {
                self.read = true;
                self.ok(decoder)?;
            }
            (State::Rows, 0xfe) if payload.len() < 9 => {
                self.read = true;
                decoder.u16()?;
                let status = decoder.u16()?;
                self.result_ends(status);
            }
            (State::Rows, _) => {
                if let Some(rows) = rows {
                    rows.push(match self.command {
                        Command::Execute => binary_row(payload, &self.columns)?,
                        Command::Query | Command::Prepare => text_row(payload, self.columns.len())?,
                    });
                }
            }
            (State::Descriptions(left), _) => {
                self.state = if left > 1 {
                    State::Descriptions(left - 1)
                } else {
                    State::Done
                };
            }
            (State::Done, _) => {}
        }
        Ok(())
    }

    fn after_column(&self, left: u64) -> State {
        match left {
            2.. => State::Columns(left - 1),
            _ if self.dialect.deprecate_eof => State::Rows,
            _ => State::ColumnsEnd,
        }
    }

    fn ok(&mut self, mut decoder: Decoder<'_>) -> Result<(), Malformed> {
        self.affected = decoder.length()?;
        let _insert_id = decoder.length()?;
        let status = decoder.u16()?;
        self.result_ends(status);
        Ok(())
    }

    fn result_ends(&mut self, status: u16) {
        if status & MORE_RESULTS != 0 {
            self.state = State::First;
        } else {
            let effect = if self.read {
                Effect::Read
            } else {
                effect_of(self.affected)
            };
            self.end(Said::Done(effect));
        }
    }

    fn end(&mut self, said: Said) {
        self.said = Some(said);
        self.state = State::Done;
    }
}

/// The rest of an ERR packet.
fn failure(mut decoder: Decoder<'_>) -> Result<Failure, Malformed> {
    let errno = u32::from(decoder.u16()?);
    let mut sqlstate = "HY000".to_owned();
    if decoder.0.first() == Some(&b'#') {
        sqlstate = String::from_utf8_lossy(&decoder.bytes(6)?[1..]).into_owned();
    }
    let message = String::from_utf8_lossy(decoder.0);
    Ok(Failure {
        errno,
        sqlstate,
        message: message.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}
