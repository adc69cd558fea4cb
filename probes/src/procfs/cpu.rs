//! Reads `/proc/stat`: CPU time by state, per CPU and in total, and context switches, interrupts
//! and forks of the host.
//!
//! Values are recorded as printed. According to proc_stat(5), iowait can decrease; idle is sampled
//! on kernels that account CPU time at the clock tick. CPUs that are offline have no row.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::MOUNT_PROC;
use super::fields::Cursor;
use super::fields::empty;
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
    "cpu",
    "CPU time by state, context switches, interrupts, forks",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("cpu")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const STATES: usize = 10;

static COLUMNS: &[Column] = &[
    Column::counter(
        "user",
        Unit::Tick,
        "user mode, guests included",
        "/proc/stat cpu field 1",
    ),
    Column::counter(
        "nice",
        Unit::Tick,
        "user mode at low priority",
        "/proc/stat cpu field 2",
    ),
    Column::counter("system", Unit::Tick, "kernel mode", "/proc/stat cpu field 3"),
    Column::counter(
        "idle",
        Unit::Tick,
        "idle without outstanding I/O",
        "/proc/stat cpu field 4",
    ),
    Column::counter(
        "iowait",
        Unit::Tick,
        "idle with outstanding I/O; can decrease",
        "/proc/stat cpu field 5",
    ),
    Column::counter("irq", Unit::Tick, "hardware interrupts", "/proc/stat cpu field 6"),
    Column::counter("softirq", Unit::Tick, "soft interrupts", "/proc/stat cpu field 7"),
    Column::counter(
        "steal",
        Unit::Tick,
        "taken by the hypervisor",
        "/proc/stat cpu field 8",
    )
    .lower(),
    Column::counter(
        "guest",
        Unit::Tick,
        "guests; included in user",
        "/proc/stat cpu field 9",
    ),
    Column::counter(
        "guest_nice",
        Unit::Tick,
        "niced guests; included in nice",
        "/proc/stat cpu field 10",
    ),
    Column::counter(
        "ctxt",
        Unit::One,
        "context switches of the host",
        "/proc/stat ctxt",
    ),
    Column::counter(
        "intr",
        Unit::One,
        "interrupts serviced",
        "/proc/stat intr field 1",
    ),
    Column::counter(
        "softirqs",
        Unit::One,
        "soft interrupts serviced",
        "/proc/stat softirq field 1",
    ),
    Column::counter(
        "processes",
        Unit::One,
        "processes and threads created",
        "/proc/stat processes",
    ),
    Column::gauge(
        "procs_running",
        Unit::One,
        "tasks running or runnable",
        "/proc/stat procs_running",
    ),
    Column::gauge(
        "procs_blocked",
        Unit::One,
        "tasks blocked on I/O",
        "/proc/stat procs_blocked",
    ),
];

/// The keys of the lines after the CPUs, in the order of their columns.
const TOTALS: [&[u8]; 6] = [
    b"ctxt",
    b"intr",
    b"softirq",
    b"processes",
    b"procs_running",
    b"procs_blocked",
];

#[derive(Debug)]
struct Cpu {
    stat: Source,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Cpu {
        stat: host.source("stat", MOUNT_PROC)?.in_one_read(),
    }))
}

impl Probe for Cpu {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.stat.parse(|text| parse(text, rows))
    }
}

/// Parses `/proc/stat` (proc_stat(5), `fs/proc/stat.c`). Old kernels print fewer states; those are
/// null.
///
/// ```text
/// cpu  70562 0 13726 163827 1293 0 194 137 0 0
/// cpu0 31789 0 5541 87224 200 0 22 66 0 0
/// intr 699889 0 0 …
/// ctxt 1032372
/// ```
///
/// # Errors
/// When a value is not a number, or the line `cpu` is missing.
pub fn parse(stat: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(stat);
    let mut all: Option<[Option<u64>; STATES]> = None;
    let mut totals = [None; TOTALS.len()];
    while !cursor.at_end() {
        match cursor.word() {
            Some(b"cpu") => all = Some(states(&mut cursor)?),
            Some(word) if word.starts_with(b"cpu") => {
                let states = states(&mut cursor)?;
                rows.row(&[&word[3..]]);
                states.iter().for_each(|state| rows.uint_or_null(*state));
                rows.nulls(TOTALS.len());
            }
            Some(word) => {
                if let Some(index) = TOTALS.iter().position(|total| *total == word) {
                    totals[index] = Some(cursor.need_uint("total")?);
                }
            }
            None => {}
        }
        cursor.next_line();
    }
    let all = all.ok_or_else(|| empty("cpu"))?;
    rows.row(&[b"all"]);
    all.iter()
        .chain(&totals)
        .for_each(|value| rows.uint_or_null(*value));
    Ok(())
}

fn states(cursor: &mut Cursor<'_>) -> Result<[Option<u64>; STATES], ParseError> {
    let mut states = [None; STATES];
    for state in &mut states {
        *state = cursor.uint("state")?;
    }
    Ok(states)
}
