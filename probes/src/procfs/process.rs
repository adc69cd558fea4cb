//! Reads `/proc/PID/stat` and `/proc/PID/io` of the watched processes, and of the recorder with the
//! role `recorder`.
//!
//! A process that starts and exits between two samples has no row. Only the user of the process and
//! root can read `io`; its columns are null otherwise.

use super::entities::Entities;
use super::fields::values;
use super::targets::Targets;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "process",
    "CPU time, memory and I/O of the watched processes and of the recorder",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("role"), text("pid")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    info "comm", "the program's name", "/proc/PID/stat field 2";
    counter(Tick) "starttime", "start time, since boot", "/proc/PID/stat field 22";
    counter(Tick) "utime", "user mode", "/proc/PID/stat field 14";
    counter(Tick) "stime", "kernel mode", "/proc/PID/stat field 15";
    gauge(One) "threads", "threads", "/proc/PID/stat field 20";
    gauge(Page) "rss", "resident memory; inexact by some pages per thread", "/proc/PID/stat field 24";
    counter(One) "minflt", "faults without I/O", "/proc/PID/stat field 10";
    counter(One) "majflt", "faults with I/O", "/proc/PID/stat field 12";
    counter(Byte) "read_bytes", "read from storage", "/proc/PID/io";
    counter(Byte) "write_bytes", "sent to storage", "/proc/PID/io";
};

/// The fields of the columns after the name (proc_pid_stat(5)).
const FIELDS: [usize; 7] = [22, 14, 15, 20, 24, 10, 12];
/// The keys in `/proc/PID/io`, in the order of their columns.
const IO: [&str; 2] = ["read_bytes", "write_bytes"];

#[derive(Debug)]
struct Process {
    host: Host,
    targets: Targets,
    open: Entities<(String, u32), Watched>,
}

#[derive(Debug)]
struct Watched {
    pid: String,
    stat: Source,
    io: Option<Source>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let mut process = Process {
        host: host.clone(),
        targets: Targets::new(host, options.with_recorder()),
        open: Entities::default(),
    };
    Ok(Background::spawn("process", move |rows| process.sample(rows)))
}

impl Process {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for process in self.targets.find() {
            self.open
                .find(process, |(_, pid)| Watched::open(&self.host, *pid))?;
        }
        self.open.sample(rows, COLUMNS.len(), |(role, _), files, rows| {
            let entity = [role.as_bytes(), files.pid.as_bytes()];
            files.stat.parse(|text| parse_stat(text, entity, rows))?;
            match &mut files.io {
                Some(io) => io.parse(|text| parse_io(text, rows))?,
                None => rows.nulls(IO.len()),
            }
            Ok(())
        })
    }
}

impl Watched {
    fn open(host: &Host, pid: u32) -> Result<Self, ProbeError> {
        let file = |name: &str| Source::open(host.proc(&format!("{pid}/{name}")));
        let stat = file("stat")?.in_one_read();
        // Only the user of the process and root can read it, and some kernels do not have it.
        let io = file("io").and_then(|mut io| io.read().map(drop).map(|()| io));
        Ok(Self {
            pid: pid.to_string(),
            stat,
            io: io.ok().map(Source::in_one_read),
        })
    }
}

/// Parses `/proc/PID/stat` (proc_pid_stat(5), `fs/proc/array.c`). The name can contain blanks and
/// brackets: it ends at the last `)`.
///
/// ```text
/// 26260 (cat) R 26241 26241 19711 0 -1 4194304 102 0 0 0 0 0 0 0 20 0 1 0 220877 3133440 372 …
/// ```
///
/// # Errors
/// When the name is not in brackets.
pub fn parse_stat(file: &[u8], entity: [&[u8]; 2], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    let open = memchr::memchr(b'(', file).ok_or_else(|| cursor.error("comm", "no `(`"))?;
    let close = memchr::memrchr(b')', file).filter(|close| *close > open);
    let close = close.ok_or_else(|| cursor.error("comm", "no `)`"))?;
    cursor.skip(close + 1);
    rows.row(&entity);
    rows.text(&file[open + 1..close]);
    // The next field is field 3.
    let words: Vec<_> = (3..=24).map(|_| cursor.word().unwrap_or_default()).collect();
    for word in FIELDS.map(|field| words[field - 3]) {
        let value = (!word.is_empty()).then(|| cursor.number("stat field", word));
        rows.uint_or_null(value.flatten());
    }
    rows.odd_mut().add(&cursor.into_odd());
    Ok(())
}

/// Parses `/proc/PID/io` (proc_pid_io(5)).
///
/// ```text
/// read_bytes: 0
/// write_bytes: 4096
/// ```
///
/// # Errors
/// None.
pub fn parse_io(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let values = values(file, IO, rows.odd_mut());
    values.iter().for_each(|value| rows.uint_or_null(*value));
    Ok(())
}
