//! The processor's own counters (PMU): cycles, instructions, last-level cache, address translation, branches, by CPU set.
//!
//! Every event has a counter on every CPU (perf_event_open(2)). Where there are more events than the processor has counters the
//! kernel gives each a share of the time: `enabled_ns` and `running_ns` tell, and nothing is scaled here. Reading one counter is
//! a system call and, on another CPU, an interrupt to that CPU (1 to 5 µs together); it happens beside the ticks, about once a
//! second. A processor without counters, which is what most virtual machines show, makes the probe unavailable.

use std::fs;
use std::io;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use perf_event::Builder;
use perf_event::Counter;
use perf_event::events::Cache;
use perf_event::events::CacheId;
use perf_event::events::CacheOp;
use perf_event::events::CacheResult;
use perf_event::events::Hardware;
use perf_event::events::Software;

use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;
use crate::options::CpuSet;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "perf",
    "the processor's counters: cycles, instructions, cache, translation and branch misses",
    &SCHEMA,
    open,
)
.every_nth()
.live();

static ENTITY: &[Text] = &[text("event"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "value",
        Unit::One,
        "events while the counter was running; missing if it never was, or cannot be had",
        "perf_event_open(2), value",
    ),
    Column::counter(
        "enabled_ns",
        Unit::Nanosecond,
        "time since the counter was opened, of all CPUs together",
        "perf_event_open(2), time_enabled",
    ),
    Column::counter(
        "running_ns",
        Unit::Nanosecond,
        "time in which it counted; less than enabled_ns where counters are shared",
        "perf_event_open(2), time_running",
    ),
];

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A generic hardware event.
    Hardware(Hardware),
    /// Loads that miss a cache, or the translations' own.
    LoadMisses(CacheId),
    /// Something that the kernel counts itself, with or without a PMU.
    Software(Software),
}

/// The events of the standard set. What a processor takes for a reference to the cache, usually the last level's, is its own
/// affair (perf_event_open(2), PERF_COUNT_HW_CACHE_REFERENCES).
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
    /// A counter on one CPU, of all that runs there, kernel included.
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

/// What the kernel says of one counter, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    value: u64,
    enabled_ns: u64,
    running_ns: u64,
}

/// The value, if the counter ever counted: one that found no place in the PMU has not measured nothing, it has not measured.
fn classify(reading: Reading) -> Option<u64> {
    (reading.running_ns > 0).then_some(reading.value)
}

/// The rows of one set of CPUs.
#[derive(Debug)]
struct Sum {
    cpus: String,
    set: CpuSet,
}

/// One event's counters, by CPU; none where the processor does not have it.
#[derive(Debug)]
struct Counters {
    event: &'static str,
    on_cpus: Vec<(u32, Counter)>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    open_events(host, options, &EVENTS)
}

/// Opens the probe for these events, each under its name: summed over the CPU sets of `options`, or over all CPUs if there are
/// none; with `full_matrix` on every CPU too.
///
/// # Errors
/// [`NotRunning::Unavailable`] if none of them can be counted here.
pub fn open_events(
    host: &Host,
    options: &Options,
    events: &[(&'static str, Event)],
) -> Result<Box<dyn Probe>, NotRunning> {
    let online = online(host)?;
    let mut sums: Vec<_> = options
        .cpusets
        .iter()
        .map(|(role, set)| Sum {
            cpus: role.clone(),
            set: set.clone(),
        })
        .collect();
    if sums.is_empty() {
        sums.push(Sum {
            cpus: "all".to_owned(),
            set: online.clone(),
        });
    }
    let counted = |cpu: &&u32| sums.iter().any(|sum| sum.set.contains(**cpu));
    let cpus: Vec<u32> = online.cpus().iter().filter(counted).copied().collect();
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
        let none = "perf: none of the CPU sets is online; name others with --cpuset".to_owned();
        return Err(NotRunning::Unavailable(refusal.unwrap_or(none)));
    }
    if options.full_matrix {
        let each = cpus.iter().filter_map(|cpu| {
            let cpus = cpu.to_string();
            let set = cpus.parse().ok()?;
            Some(Sum { cpus, set })
        });
        sums.extend(each);
    }
    Ok(Background::spawn("perf", move |rows| {
        counters
            .iter_mut()
            .try_for_each(|counters| counters.read(&sums, rows))
    }))
}

fn online(host: &Host) -> Result<CpuSet, NotRunning> {
    let path = host.sys("devices/system/cpu/online");
    let unavailable =
        |why: String| NotRunning::Unavailable(format!("{}: {why}; mount sysfs there", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| unavailable(error.to_string()))?;
    text.trim().parse().map_err(unavailable)
}

/// Why there is no counter, and what would make it work.
fn refused(error: &io::Error, counters: usize) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "perf: counting a whole CPU is forbidden here; run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid \
             to 0 (sysctl)"
                .to_owned()
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL | libc::ENXIO) => {
            "perf: the processor shows no counters (PMU), as in most virtual machines; have the hypervisor pass them on, or \
             measure on bare metal"
                .to_owned()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            format!("perf: {error}; {counters} are needed: raise the limit on open files (ulimit -n)")
        }
        _ => format!("perf: {error}; the kernel needs CONFIG_PERF_EVENTS"),
    }
}

impl Counters {
    fn read(&mut self, sums: &[Sum], rows: &mut Rows) -> Result<(), ProbeError> {
        let mut readings = Vec::with_capacity(self.on_cpus.len());
        for (cpu, counter) in &mut self.on_cpus {
            let read = counter.read_count_and_time();
            let read = read
                .map_err(|error| ProbeError::Source(format!("perf: {} on CPU {cpu}: {error}", self.event)))?;
            let reading = Reading {
                value: read.count,
                enabled_ns: read.time_enabled,
                running_ns: read.time_running,
            };
            readings.push((*cpu, reading));
        }
        for Sum { cpus, set } in sums {
            rows.row(&[self.event.as_bytes(), cpus.as_bytes()]);
            match total(
                readings
                    .iter()
                    .filter(|(cpu, _)| set.contains(*cpu))
                    .map(|(_, reading)| *reading),
            ) {
                Some(total) => {
                    rows.uint_or_null(classify(total));
                    rows.uint(total.enabled_ns);
                    rows.uint(total.running_ns);
                }
                None => rows.nulls(COLUMNS.len()),
            }
        }
        Ok(())
    }
}

/// Several counters of one event together; `None` if there are none.
fn total(readings: impl Iterator<Item = Reading>) -> Option<Reading> {
    readings.reduce(|sum, reading| Reading {
        value: sum.value.wrapping_add(reading.value),
        enabled_ns: sum.enabled_ns.wrapping_add(reading.enabled_ns),
        running_ns: sum.running_ns.wrapping_add(reading.running_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading {
            value,
            enabled_ns,
            running_ns,
        }
    }

    #[test]
    fn what_never_ran_was_not_measured() {
        assert_eq!(classify(reading(0, 1000, 0)), None);
        assert_eq!(classify(reading(7, 1000, 0)), None);
        assert_eq!(classify(reading(0, 0, 0)), None);
        assert_eq!(classify(reading(0, 1000, 1)), Some(0), "a zero that was measured");
        // A share of the time is told by the times and not made good here.
        assert_eq!(classify(reading(7, 1000, 250)), Some(7));
        assert_eq!(classify(reading(7, 1000, 1000)), Some(7));
        assert_eq!(classify(reading(u64::MAX, 1000, 1000)), Some(u64::MAX));
    }

    #[test]
    fn counters_add_up() {
        let both = [reading(1, 10, 10), reading(u64::MAX, 10, 5)];
        assert_eq!(total(both.into_iter()), Some(reading(0, 20, 15)));
        assert_eq!(total([].into_iter()), None);
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        for (errno, expected) in [
            (libc::EACCES, "kernel.perf_event_paranoid"),
            (libc::ENOENT, "no counters (PMU)"),
            (libc::EOPNOTSUPP, "no counters (PMU)"),
            (libc::EMFILE, "14 are needed: raise the limit on open files"),
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
