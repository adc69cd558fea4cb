//! Reads the hardware counters of the processor (PMU) by CPU set: cycles, instructions, cache,
//! address translation, branches.
//!
//! Every event has a counter on every CPU (perf_event_open(2)). If there are more events than
//! counters, the kernel multiplexes them; `enabled_ns` and `running_ns` show the share of each, and
//! values are not scaled. Reading a counter takes a system call and, for another CPU, an interrupt
//! to that CPU (1 to 5 µs together); a separate thread reads them about once a second. Most virtual
//! machines have no counters: the probe is then unavailable.

use std::fs;
use std::io;

use perf_event::Builder;
use perf_event::Counter;
use perf_event::events::Cache;
use perf_event::events::CacheId;
use perf_event::events::CacheOp;
use perf_event::events::CacheResult;
use perf_event::events::Hardware;
use perf_event::events::Software;

use crate::options::CpuSet;
use crate::prelude::*;
use crate::source::RAISE_OPEN_FILES;
use crate::source::fix_of;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "perf",
    "the processor's counters: cycles, instructions, cache, translation and branch misses",
    &SCHEMA,
    open,
)
.read_at(Cadence::Nth)
.live();

static ENTITY: &[Text] = &[text("event"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(One) "value",
        "events while the counter was running; missing if it never ran or is not available",
        "perf_event_open(2), value";
    counter(Nanosecond) "enabled_ns",
        "time since the counter was opened, summed over CPUs", "perf_event_open(2), time_enabled";
    counter(Nanosecond) "running_ns",
        "time in which it counted; less than enabled_ns if counters are multiplexed",
        "perf_event_open(2), time_running";
};

/// A counted event.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A generic hardware event.
    Hardware(Hardware),
    /// Loads that miss a cache or the TLB.
    LoadMisses(CacheId),
    /// An event that the kernel counts, with or without a PMU.
    Software(Software),
}

/// The events of the standard set. The processor defines which accesses are cache references,
/// usually those of the last level (perf_event_open(2), PERF_COUNT_HW_CACHE_REFERENCES).
const EVENTS: [(&str, Event); 7] = [
    ("cycles", Event::Hardware(Hardware::CPU_CYCLES)),
    ("instructions", Event::Hardware(Hardware::INSTRUCTIONS)),
    ("cache_references", Event::Hardware(Hardware::CACHE_REFERENCES)),
    ("cache_misses", Event::Hardware(Hardware::CACHE_MISSES)),
    ("dtlb_load_misses", Event::LoadMisses(CacheId::DTLB)),
    ("branches", Event::Hardware(Hardware::BRANCH_INSTRUCTIONS)),
    ("branch_misses", Event::Hardware(Hardware::BRANCH_MISSES)),
];

impl Event {
    /// A counter of everything that runs on one CPU, kernel included.
    fn on(self, cpu: u32) -> io::Result<Counter> {
        let mut builder = match self {
            Self::Hardware(event) => Builder::new(event),
            Self::LoadMisses(which) => Builder::new(Cache {
                which,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            }),
            Self::Software(event) => Builder::new(event),
        };
        builder
            .any_pid()
            .one_cpu(cpu as usize)
            .include_kernel()
            .include_hv()
            .enabled(true)
            .build()
    }
}

/// Value, time enabled and time running of a counter.
type Reading = [u64; 3];

/// The cells of a row: the sums of the counters of one event. A counter that got no place in the PMU has no
/// value, not 0.
fn cells(readings: impl Iterator<Item = Reading>) -> [Option<u64>; 3] {
    let sum = |one: Reading, other: Reading| [0, 1, 2].map(|place| one[place].wrapping_add(other[place]));
    let Some([value, enabled_ns, running_ns]) = readings.reduce(sum) else {
        return [None; 3];
    };
    let value = (running_ns > 0).then_some(value);
    [value, Some(enabled_ns), Some(running_ns)]
}

/// The counters of one event by CPU; none if the processor does not have the event.
struct Counters {
    event: &'static str,
    on_cpus: Vec<(u32, Counter)>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    open_events(host, options, &EVENTS)
}

/// Opens the probe for these named events: summed over each CPU set of `options`, or over all CPUs
/// if there are no sets.
///
/// # Errors
/// [`NotRunning::Unavailable`] if this host cannot count any of them.
pub fn open_events(
    host: &Host,
    options: &Options,
    events: &[(&'static str, Event)],
) -> Result<Box<dyn Probe>, NotRunning> {
    let online = online_cpus(host)?;
    let mut sums = options.cpusets.clone();
    if sums.is_empty() {
        sums.push(("all".to_owned(), online));
    }
    let counted = |cpu: &u32| sums.iter().any(|(_, set)| set.contains(*cpu));
    let cpus: Vec<u32> = online.cpus().filter(counted).collect();
    let mut counters = vec![];
    let mut refusal = None;
    for (event, config) in events {
        let mut on_cpus = vec![];
        for cpu in &cpus {
            match config.on(*cpu) {
                Ok(counter) => on_cpus.push((*cpu, counter)),
                Err(error) => refusal = Some(refused(&error, events.len() * cpus.len())),
            }
        }
        counters.push(Counters { event, on_cpus });
    }
    if counters.iter().all(|counters| counters.on_cpus.is_empty()) {
        let none = "perf: no CPU of the CPU sets is online; name others with --cpuset".to_owned();
        return Err(NotRunning::Unavailable(refusal.unwrap_or(none)));
    }
    Ok(Background::spawn("perf", move |rows| {
        counters
            .iter_mut()
            .try_for_each(|counters| counters.read(&sums, rows))
    }))
}

/// The CPUs that are online.
pub(crate) fn online_cpus(host: &Host) -> Result<CpuSet, NotRunning> {
    let path = host.sys("devices/system/cpu/online");
    let unavailable = |why: String, fix| NotRunning::Unavailable(format!("{}: {why}; {fix}", path.display()));
    let fix = "mount sysfs";
    let text =
        fs::read_to_string(&path).map_err(|error| unavailable(error.to_string(), fix_of(&error, fix)))?;
    text.trim().parse().map_err(|why| unavailable(why, fix))
}

/// The reason why a counter cannot be opened, and the fix.
fn refused(error: &io::Error, counters: usize) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "perf: no permission to count a whole CPU; run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid \
             to 0 (sysctl)"
                .to_owned()
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL | libc::ENXIO) => {
            "perf: the processor has no counters (PMU), as in most virtual machines; enable the virtual PMU in the hypervisor, or \
             measure on bare metal"
                .to_owned()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            format!("perf: {error}; the probe needs {counters} counters: {RAISE_OPEN_FILES}")
        }
        _ => format!("perf: {error}; the kernel needs CONFIG_PERF_EVENTS"),
    }
}

impl Counters {
    fn read(&mut self, sums: &[(String, CpuSet)], rows: &mut Rows) -> Result<(), ProbeError> {
        let mut readings = Vec::with_capacity(self.on_cpus.len());
        for (cpu, counter) in &mut self.on_cpus {
            let read = counter.read_count_and_time();
            let read = read
                .map_err(|error| ProbeError::Source(format!("perf: {} on CPU {cpu}: {error}", self.event)))?;
            readings.push((*cpu, [read.count, read.time_enabled, read.time_running]));
        }
        for (cpus, set) in sums {
            rows.row(&[self.event.as_bytes(), cpus.as_bytes()]);
            let on_cpus = readings.iter().filter(|(cpu, _)| set.contains(*cpu));
            let cells = cells(on_cpus.map(|(_, reading)| *reading));
            cells.into_iter().for_each(|cell| rows.uint_or_null(cell));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_and_one_that_never_ran_has_no_value() {
        for (readings, value) in [
            (&[[0, 1000, 0]][..], None),
            (&[[7, 1000, 0]], None),
            (&[[0, 0, 0]], None),
            // The counter ran and counted 0.
            (&[[0, 1000, 1]], Some(0)),
            // A multiplexed value is not scaled.
            (&[[7, 1000, 250]], Some(7)),
            (&[[u64::MAX, 1000, 1000]], Some(u64::MAX)),
            (&[[1, 500, 10], [u64::MAX, 500, 5]], Some(0)),
        ] {
            assert_eq!(cells(readings.iter().copied())[0], value, "{readings:?}");
        }
        let both = [[1, 10, 10], [2, 10, 5]];
        assert_eq!(cells(both.into_iter()), [Some(3), Some(20), Some(15)]);
        assert_eq!(cells([].into_iter()), [None; 3]);
    }

    #[test]
    fn errors_have_a_fix() {
        for (errno, expected) in [
            (libc::EACCES, "kernel.perf_event_paranoid"),
            (libc::ENOENT, "no counters (PMU)"),
            (libc::EOPNOTSUPP, "no counters (PMU)"),
            (libc::EMFILE, "needs 14 counters: raise the limit of open files"),
            (libc::ENOSYS, "CONFIG_PERF_EVENTS"),
        ] {
            let reason = refused(&io::Error::from_raw_os_error(errno), 14);
            assert!(
                reason.starts_with("perf: ") && reason.contains(expected),
                "{reason}"
            );
            assert!(reason.contains("; ") && reason.lines().count() == 1, "{reason}");
        }
    }
}
