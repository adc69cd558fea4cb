//! Reads `/proc/stat`: CPU time by state, per CPU and in total, and context switches, interrupts
//! and forks of the host.
//!
//! Values are recorded as printed. According to proc_stat(5), iowait can decrease; idle is sampled
//! on kernels that account CPU time at the clock tick. CPUs that are offline have no row.

use crate::prelude::*;

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

static COLUMNS: &[Column] = columns! {
    counter(Tick) "user", "user mode, guests included", "/proc/stat cpu field 1";
    counter(Tick) "nice", "user mode at low priority", "/proc/stat cpu field 2";
    counter(Tick) "system", "kernel mode", "/proc/stat cpu field 3";
    counter(Tick) "idle", "idle without outstanding I/O", "/proc/stat cpu field 4";
    counter(Tick) "iowait", "idle with outstanding I/O; can decrease", "/proc/stat cpu field 5";
    counter(Tick) "irq", "hardware interrupts", "/proc/stat cpu field 6";
    counter(Tick) "softirq", "soft interrupts", "/proc/stat cpu field 7";
    counter(Tick) "steal", "taken by the hypervisor", "/proc/stat cpu field 8", lower;
    counter(Tick) "guest", "guests; included in user", "/proc/stat cpu field 9";
    counter(Tick) "guest_nice", "niced guests; included in nice", "/proc/stat cpu field 10";
    counter(One) "ctxt", "context switches of the host", "/proc/stat ctxt";
    counter(One) "intr", "interrupts serviced", "/proc/stat intr field 1", bits(32);
    counter(One) "softirqs", "soft interrupts serviced", "/proc/stat softirq field 1", bits(32);
    counter(One) "processes", "processes and threads created", "/proc/stat processes";
    gauge(One) "procs_running", "tasks running or runnable", "/proc/stat procs_running";
    gauge(One) "procs_blocked", "tasks blocked on I/O", "/proc/stat procs_blocked";
};

/// The keys of the lines after the CPUs, in the order of their columns.
const TOTALS: [&[u8]; 6] = [
    b"ctxt",
    b"intr",
    b"softirq",
    b"processes",
    b"procs_running",
    b"procs_blocked",
];

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("stat", MOUNT_PROC)?.in_one_read();
    Ok(Box::new(Files::default().with(file, parse)))
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
/// When the line `cpu` is missing.
pub fn parse(stat: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let mut all: Option<[Option<u64>; STATES]> = None;
    let mut totals = [None; TOTALS.len()];
    let odd = each_line(stat, |cursor| match cursor.word() {
        Some(b"cpu") => all = Some(cursor.uints("state").0),
        Some(word) if word.starts_with(b"cpu") => {
            let number = &word[3..];
            if !number.iter().all(u8::is_ascii_digit) {
                return cursor.odd_line("no number of a CPU");
            }
            let (states, _): ([_; STATES], _) = cursor.uints("state");
            rows.row(&[number]);
            states.iter().for_each(|state| rows.uint_or_null(*state));
            rows.nulls(TOTALS.len());
        }
        Some(word) => {
            if let Some(index) = TOTALS.iter().position(|total| *total == word) {
                totals[index] = cursor.uint("total");
            }
        }
        None => {}
    });
    rows.odd_mut().add(&odd);
    let all = all.ok_or_else(|| empty("cpu"))?;
    rows.row(&[b"all"]);
    let cells = all.iter().chain(&totals);
    cells.for_each(|value| rows.uint_or_null(*value));
    Ok(())
}
