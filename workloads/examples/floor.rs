//! Measures the minimal CPU time of a client with a thread per connection: it sends prebuilt
//! packets, one send per statement, and reads replies only to find their end.
//! `tests/benches/load_generator.py` compares it with the generator and sysbench.
//!
//! ```text
//! floor SOCKET|HOST:PORT DEFAULTS_FILE DATABASE point_select|read_write text|prepared THREADS SECONDS TABLE_SIZE
//! ```
//! Prints `queries N seconds S`. Logs in and prepares with libmysqlclient, then uses its socket.

use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::io::Read;
use std::io::Write;
use std::iter;
use std::mem;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::anyhow;
use anyhow::bail;
use clap::Parser;
use loadprint_mysqlclient::OptionFile;
use loadprint_mysqlclient::attach_thread;
use mysqlclient_sys as sys;

const CLIENT_DEPRECATE_EOF: c_ulong = 1 << 24;
const CLIENT_QUERY_ATTRIBUTES: c_ulong = 1 << 27;
const COM_QUERY: u8 = 3;
const COM_STMT_EXECUTE: u8 = 0x17;
/// Prebuilt transactions of each connection.
const PREBUILT: usize = 256;

/// Parameters of a statement: none, an id, both ends of a range, a text, or a whole row.
#[derive(Clone, Copy)]
enum Params {
    None,
    Id,
    Range,
    Text,
    Row,
}

/// A statement, its parameters and how often it runs.
type Statement = (&'static str, Params, usize);

const POINT_SELECT: &[Statement] = &[("SELECT c FROM sbtest1 WHERE id=?", Params::Id, 1)];
const READ_WRITE: &[Statement] = &[
    ("BEGIN", Params::None, 1),
    ("SELECT c FROM sbtest1 WHERE id=?", Params::Id, 10),
    ("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?", Params::Range, 1),
    (
        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
        Params::Range,
        1,
    ),
    (
        "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
        Params::Range,
        1,
    ),
    (
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
        Params::Range,
        1,
    ),
    ("UPDATE sbtest1 SET k=k+1 WHERE id=?", Params::Id, 1),
    ("UPDATE sbtest1 SET c=? WHERE id=?", Params::Text, 1),
    ("DELETE FROM sbtest1 WHERE id=?", Params::Id, 1),
    (
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
        Params::Row,
        1,
    ),
    ("COMMIT", Params::None, 1),
];

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Workload {
    PointSelect,
    ReadWrite,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Protocol {
    Text,
    Prepared,
}

#[derive(clap::Parser)]
struct Arguments {
    /// A socket, or HOST:PORT.
    server: String,
    defaults_file: PathBuf,
    database: String,
    workload: Workload,
    protocol: Protocol,
    threads: usize,
    seconds: f64,
    table_size: u32,
}

impl Arguments {
    /// The statements of a transaction.
    fn statements(&self) -> Vec<(&'static str, Params)> {
        let all = match self.workload {
            Workload::PointSelect => POINT_SELECT,
            Workload::ReadWrite => READ_WRITE,
        };
        let repeated = |(sql, params, times): &Statement| iter::repeat_n((*sql, *params), *times);
        all.iter().flat_map(repeated).collect()
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    attach_thread();
    let (barrier, over) = (Barrier::new(arguments.threads + 1), AtomicBool::new(false));
    let (arguments, barrier, over) = (&arguments, &barrier, &over);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads)
            .map(|number| scope.spawn(move || client(arguments, number, barrier, over)))
            .collect();
        barrier.wait();
        let begin = Instant::now();
        thread::sleep(Duration::from_secs_f64(arguments.seconds));
        over.store(true, Relaxed);
        let mut queries = 0;
        for thread in threads {
            queries += thread.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        println!("queries {queries} seconds {:.6}", begin.elapsed().as_secs_f64());
        Ok(())
    })
}

/// Runs statements until the time is over; returns their number.
fn client(arguments: &Arguments, number: usize, barrier: &Barrier, over: &AtomicBool) -> Result<u64> {
    let opened = Connection::open(arguments, number as u64 + 1);
    barrier.wait();
    let mut connection = opened?;
    let transactions = mem::take(&mut connection.transactions);
    let mut queries = 0;
    for packet_list in transactions.iter().cycle() {
        if over.load(Relaxed) {
            break;
        }
        for packet in packet_list {
            queries += 1;
            if !connection.exchange(packet)? {
                // A deadlock: the server has rolled back.
                break;
            }
        }
    }
    Ok(queries)
}

struct Connection {
    /// Of the library, which is never closed.
    stream: ManuallyDrop<UnixStream>,
    polled: bool,
    deprecate_eof: bool,
    /// The packets of each.
    transactions: Vec<Vec<Vec<u8>>>,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(arguments: &Arguments, seed: u64) -> Result<Self> {
        let text = |text: &str| CString::new(text).context("an argument contains a zero byte");
        let file = OptionFile::read(&arguments.defaults_file, "DEFAULTS_FILE", &["client"])?;
        let [user, password] = ["user", "password"].map(|name| text(file.get(name).unwrap_or_default()));
        let (user, password, database) = (user?, password?, text(&arguments.database)?);
        let tcp = arguments
            .server
            .rsplit_once(':')
            .map(|(host, port)| (text(host), port.parse()));
        let (host, port, socket) = match tcp {
            Some((host, port)) => (Some(host?), port.context("PORT")?, None),
            None => (None, 0, Some(text(&arguments.server)?)),
        };
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        // SAFETY: a fresh handle; options are copied; all strings live until the call returns.
        unsafe {
            let mysql = sys::mysql_init(ptr::null_mut());
            let disabled: c_uint = 1;
            sys::mysql_options(
                mysql,
                sys::mysql_option::MYSQL_OPT_SSL_MODE,
                (&raw const disabled).cast(),
            );
            let open = sys::mysql_real_connect(
                mysql,
                pointer(&host),
                user.as_ptr(),
                password.as_ptr(),
                database.as_ptr(),
                port,
                pointer(&socket),
                0,
            );
            if open.is_null() {
                bail!(
                    "{}: {}",
                    arguments.server,
                    CStr::from_ptr(sys::mysql_error(mysql)).to_string_lossy()
                );
            }
            let capabilities = (*mysql).client_flag & (*mysql).server_capabilities;
            let attributes = capabilities & CLIENT_QUERY_ATTRIBUTES != 0;
            let mut builder = Builder {
                arguments,
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                attributes,
            };
            let transactions = builder.transactions(mysql)?;
            Ok(Self {
                // A socket of the other family is read and written with the same calls.
                stream: ManuallyDrop::new(UnixStream::from_raw_fd((*mysql).net.fd)),
                polled: socket.is_some(),
                deprecate_eof: capabilities & CLIENT_DEPRECATE_EOF != 0,
                transactions,
                buffer: vec![0; 1 << 16],
            })
        }
    }

    /// Sends a packet and reads its whole reply; false for an error of the server.
    fn exchange(&mut self, packet: &[u8]) -> Result<bool> {
        self.stream.write_all(packet).context("send")?;
        let mut end = ReplyParser {
            columns: None,
            left: 0,
            deprecate_eof: self.deprecate_eof,
        };
        let (mut filled, mut at) = (0, 0);
        loop {
            filled += self.receive(filled)?;
            while filled - at >= 5 {
                let length =
                    u32::from_le_bytes([self.buffer[at], self.buffer[at + 1], self.buffer[at + 2], 0])
                        as usize;
                if filled - at < 4 + length {
                    break;
                }
                let payload = &self.buffer[at + 4..at + 4 + length];
                at += 4 + length;
                if let Some(good) = end.packet(payload) {
                    return Ok(good);
                }
            }
            if at > 0 && filled == self.buffer.len() {
                self.buffer.copy_within(at..filled, 0);
                (filled, at) = (filled - at, 0);
            }
        }
    }

    fn receive(&mut self, filled: usize) -> Result<usize> {
        if self.polled {
            let mut wanted = libc::pollfd {
                fd: self.stream.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: the pollfd is alive during the call.
            unsafe { libc::poll(&raw mut wanted, 1, -1) };
        }
        match self.stream.read(&mut self.buffer[filled..]).context("recv")? {
            0 => bail!("the server closed the connection"),
            got => Ok(got),
        }
    }
}

/// Finds the end of a reply.
struct ReplyParser {
    columns: Option<u64>,
    left: u64,
    deprecate_eof: bool,
}

impl ReplyParser {
    /// Reads the next packet; `Some` if it was the last one, true unless it was an error.
    fn packet(&mut self, payload: &[u8]) -> Option<bool> {
        match (payload[0], self.columns) {
            (0xff, _) => Some(false),
            (0, None) => Some(true),
            (count, None) => {
                self.columns = Some(u64::from(count));
                self.left = u64::from(count) + u64::from(!self.deprecate_eof);
                None
            }
            _ if self.left > 0 => {
                self.left -= 1;
                None
            }
            (0xfe, _) if payload.len() < 0xff_ffff => Some(true),
            _ => None,
        }
    }
}

/// Builds packets.
struct Builder<'a> {
    arguments: &'a Arguments,
    random: u64,
    attributes: bool,
}

impl Builder<'_> {
    /// # Safety
    /// `mysql` must be connected.
    unsafe fn transactions(&mut self, mysql: *mut sys::MYSQL) -> Result<Vec<Vec<Vec<u8>>>> {
        let statements = self.arguments.statements();
        let mut ids = Vec::new();
        for (sql, _) in &statements {
            // BEGIN cannot be prepared.
            if self.arguments.protocol == Protocol::Text || *sql == "BEGIN" {
                ids.push(None);
                continue;
            }
            // SAFETY: connected by the contract; the text is described by pointer and length.
            unsafe {
                let handle = sys::mysql_stmt_init(mysql);
                if sys::mysql_stmt_prepare(handle, sql.as_ptr().cast(), sql.len() as c_ulong) != 0 {
                    bail!("cannot prepare {sql}");
                }
                ids.push(Some((*handle).stmt_id as u32));
            }
        }
        let transaction = |_| {
            let mut last = 1;
            let packet = |((sql, params), id): (&(&str, Params), &Option<u32>)| {
                // The INSERT restores the row that the DELETE removed.
                if !matches!(params, Params::Row) {
                    last = self.row();
                }
                let values = values(*params, last);
                let payload = match id {
                    Some(id) => self.execute(*id, &values),
                    None => self.query(sql, &values),
                };
                let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
                packet.extend(payload);
                packet
            };
            statements.iter().zip(&ids).map(packet).collect()
        };
        Ok((0..PREBUILT).map(transaction).collect())
    }

    /// xorshift64*: any generator is sufficient here.
    fn row(&mut self) -> u32 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let high = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        (high % u64::from(self.arguments.table_size)) as u32 + 1
    }

    fn query(&self, sql: &str, values: &[Literal]) -> Vec<u8> {
        let mut text = vec![COM_QUERY];
        if self.attributes {
            text.extend([0, 1]);
        }
        let mut values = values.iter();
        for (position, piece) in sql.split('?').enumerate() {
            if position > 0 {
                match values.next() {
                    Some(Literal::Int(number)) => text.extend(number.to_string().bytes()),
                    Some(Literal::Text(word)) => text.extend(format!("'{word}'").bytes()),
                    None => {}
                }
            }
            text.extend(piece.bytes());
        }
        text
    }

    /// Every packet contains the types, because whether it is the first one of its statement is not
    /// known beforehand.
    fn execute(&self, id: u32, values: &[Literal]) -> Vec<u8> {
        let mut packet = vec![COM_STMT_EXECUTE];
        packet.extend(id.to_le_bytes());
        packet.extend([if self.attributes { 8 } else { 0 }, 1, 0, 0, 0]);
        if self.attributes {
            packet.push(values.len() as u8);
        }
        if values.is_empty() {
            return packet;
        }
        // No NULLs (at most eight parameters), types follow.
        packet.extend([0, 1]);
        for value in values {
            packet.extend(match value {
                Literal::Int(_) => [3, 0],
                Literal::Text(_) => [254, 0],
            });
            if self.attributes {
                packet.push(0);
            }
        }
        for value in values {
            match value {
                Literal::Int(number) => packet.extend(number.to_le_bytes()),
                Literal::Text(word) => {
                    packet.push(word.len() as u8);
                    packet.extend(word.bytes());
                }
            }
        }
        packet
    }
}

enum Literal {
    Int(u32),
    Text(String),
}

fn values(params: Params, row: u32) -> Vec<Literal> {
    let text = |length: usize| Literal::Text(format!("{row:011}-").repeat(10)[..length].to_owned());
    match params {
        Params::None => Vec::new(),
        Params::Id => vec![Literal::Int(row)],
        Params::Range => vec![Literal::Int(row), Literal::Int(row + 99)],
        Params::Text => vec![text(119), Literal::Int(row)],
        Params::Row => vec![Literal::Int(row), Literal::Int(row), text(119), text(59)],
    }
}
