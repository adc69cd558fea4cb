//! Reads `/proc/PID/stat` and `/proc/PID/io` of the watched processes, and of the recorder with the
//! role `recorder`.
//!
//! A process that starts and exits between two samples has no row. Only the user of the process and
//! root can read `io`; its columns are null otherwise.

use std::io::ErrorKind;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use rustix::thread::CapabilitySet;

use super::fields::Cursor;
use super::targets::Targets;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "process",
    "CPU time, memory and I/O of the watched processes and of the recorder",
    &SCHEMA,
    open,
)
.with_capabilities(CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH));

static ENTITY: &[Text] = &[text("role"), text("pid")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const STAT: usize = 10;
const IO: [&[u8]; 6] = [
    b"read_bytes",
    b"write_bytes",
    b"rchar",
    b"wchar",
    b"syscr",
    b"syscw",
];

static COLUMNS: &[Column] = &[
    Column::info("comm", "the program's name", "/proc/PID/stat field 2"),
    Column::counter(
        "starttime",
        Unit::Tick,
        "start time, since boot",
        "/proc/PID/stat field 22",
    ),
    Column::counter("utime", Unit::Tick, "user mode", "/proc/PID/stat field 14"),
    Column::counter("stime", Unit::Tick, "kernel mode", "/proc/PID/stat field 15"),
    Column::counter(
        "cutime",
        Unit::Tick,
        "user mode of reaped children",
        "/proc/PID/stat field 16",
    )
    .stored(Type::Int64),
    Column::counter(
        "cstime",
        Unit::Tick,
        "kernel mode of reaped children",
        "/proc/PID/stat field 17",
    )
    .stored(Type::Int64),
    Column::gauge("threads", Unit::One, "threads", "/proc/PID/stat field 20"),
    Column::gauge(
        "rss",
        Unit::Page,
        "resident memory; inexact by some pages per thread",
        "/proc/PID/stat field 24",
    ),
    Column::counter(
        "minflt",
        Unit::One,
        "faults without I/O",
        "/proc/PID/stat field 10",
    ),
    Column::counter("majflt", Unit::One, "faults with I/O", "/proc/PID/stat field 12"),
    Column::counter("read_bytes", Unit::Byte, "read from storage", "/proc/PID/io"),
    Column::counter("write_bytes", Unit::Byte, "sent to storage", "/proc/PID/io"),
    Column::counter("rchar", Unit::Byte, "read by system calls", "/proc/PID/io"),
    Column::counter("wchar", Unit::Byte, "written by system calls", "/proc/PID/io"),
    Column::counter("syscr", Unit::One, "read calls", "/proc/PID/io"),
    Column::counter("syscw", Unit::One, "write calls", "/proc/PID/io"),
];

#[derive(Debug)]
struct Process {
    host: Host,
    targets: Targets,
    open: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    role: String,
    pid: u32,
    pid_text: String,
    stat: Source,
    io: Option<Source>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Process {
        host: host.clone(),
        targets: Targets::new(host, options.with_recorder()),
        open: vec![],
    }))
}

impl Probe for Process {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let processes = self.targets.find();
        self.open.retain(|watched| {
            processes
                .iter()
                .any(|(role, pid)| *role == watched.role && *pid == watched.pid)
        });
        for (role, pid) in processes {
            if !self
                .open
                .iter()
                .any(|watched| watched.role == role && watched.pid == pid)
            {
                self.open.extend(Watched::open(&self.host, role, pid)?);
            }
        }
        let mut exited = vec![];
        for watched in &mut self.open {
            let before = rows.len();
            match watched.sample(rows) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {
                    rows.truncate(before, COLUMNS.len());
                    exited.push((watched.role.clone(), watched.pid));
                }
                Err(error) => return Err(error),
            }
        }
        self.open
            .retain(|watched| !exited.contains(&(watched.role.clone(), watched.pid)));
        Ok(())
    }
}

impl Watched {
    /// Opens the files of a process; `None` if it does not exist.
    fn open(host: &Host, role: String, pid: u32) -> Result<Option<Self>, ProbeError> {
        let stat = match Source::open(host.proc(&format!("{pid}/stat"))) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Only the user of the process and root can read it, and some kernels do not have it.
        let io =
            Source::open(host.proc(&format!("{pid}/io"))).and_then(|mut io| io.read().map(drop).map(|()| io));
        Ok(Some(Self {
            role,
            pid,
            pid_text: pid.to_string(),
            stat: stat.in_one_read(),
            io: io.ok().map(Source::in_one_read),
        }))
    }

    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self {
            role,
            pid_text,
            stat,
            io,
            ..
        } = self;
        stat.parse(|text| parse_stat(text, [role.as_bytes(), pid_text.as_bytes()], rows))?;
        match io {
            Some(io) => io.parse(|text| parse_io(text, rows)),
            None => {
                rows.nulls(IO.len());
                Ok(())
            }
        }
    }
}

/// Whether the process has exited: its file does not exist, or reading it fails.
pub(super) fn is_gone(error: &ProbeError) -> bool {
    match error {
        ProbeError::Read { source, .. } => {
            source.kind() == ErrorKind::NotFound || source.raw_os_error() == Some(libc::ESRCH)
        }
        _ => false,
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
/// When the name is not in brackets, or a field is missing or not a number.
pub fn parse_stat(file: &[u8], entity: [&[u8]; 2], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    let open = memchr::memchr(b'(', file).ok_or_else(|| cursor.error("comm", "no `(`"))?;
    let close = memchr::memrchr(b')', file).filter(|close| *close > open);
    let close = close.ok_or_else(|| cursor.error("comm", "no `)`"))?;
    cursor.skip(close + 1);
    let mut stat = [0; STAT];
    // The next field is field 3.
    for field in 3..=24 {
        let index = match field {
            22 => 1,
            14 => 2,
            15 => 3,
            16 => 4,
            17 => 5,
            20 => 6,
            24 => 7,
            10 => 8,
            12 => 9,
            _ => {
                cursor.word();
                continue;
            }
        };
        stat[index] = cursor.need_int("stat field")?;
    }
    rows.row(&entity);
    rows.text(&file[open + 1..close]);
    stat[1..].iter().for_each(|value| rows.int(*value));
    Ok(())
}

/// Parses `/proc/PID/io` (proc_pid_io(5)).
///
/// ```text
/// rchar: 6976
/// read_bytes: 0
/// ```
///
/// # Errors
/// When a value is not a number.
pub fn parse_io(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    let mut values = [None; IO.len()];
    while !cursor.at_end() {
        if let Some(name) = cursor.until(b':')
            && let Some(index) = IO.iter().position(|known| *known == name)
        {
            values[index] = Some(cursor.need_uint("io")?);
        }
        cursor.next_line();
    }
    values.iter().for_each(|value| rows.uint_or_null(*value));
    Ok(())
}
