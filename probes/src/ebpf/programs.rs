//! Reads time and calls of each eBPF program of the recorder from the kernel.
//!
//! The kernel measures programs only while a process requests it (`BPF_ENABLE_STATS`): it then
//! reads the clock twice at each call of every program on the host, a quarter of what the calls
//! cost. So it is requested for the first ten seconds, which gives the time of a call, and each
//! program counts its own calls, always and by CPU. The row `empty` is of a program that does nothing:
//! its time is that of measuring, which is in the time of every call.
//! The time excludes the cost of the hook itself, such as the trap of a uprobe.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use libbpf_rs::Object;
use libbpf_rs::OpenObject;
use libbpf_rs::libbpf_sys;
use loadprint_recording::rows::Odd;

use super::map::unmapped;
use super::prelude::*;
use super::skeletons::empty::EmptySkelBuilder;
use super::skeletons::sched::types::cpu_calls;
use crate::options::CpuSet;
use crate::procfs::fields::values;
use crate::source::RAISE_OPEN_FILES;

/// The probe's line in the registry, which comes after all probes that load programs.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_programs",
    "time and calls of the recorder's own eBPF programs",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("object"), text("program"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "run_time_ns",
        "time in the program on all CPUs while the kernel measured it; null on rows of a CPU set",
        "run_time_ns of /proc/self/fdinfo, under BPF_ENABLE_STATS", lower;
    counter(One) "run_cnt",
        "calls that this time covers; null on rows of a CPU set",
        "run_cnt of /proc/self/fdinfo, under BPF_ENABLE_STATS", lower;
    counter(One) "calls",
        "calls on these CPUs since the program was loaded", "counted by the program itself, by CPU", lower;
};

/// The object and the program that does nothing.
const EMPTY: &str = "empty";

/// Sleeps of this process that call it, at the start.
const SLEEPS: usize = 200;

/// The kernel measures until the first sample after this time: the warm-up of most loads.
const MEASURED: Duration = Duration::from_secs(10);

/// `CALL_COUNTER` puts this before the name of the program to name its map. A program without such
/// a map is refused.
const CALLS: &str = "calls_";

/// A program that was loaded. The descriptor is a duplicate: its probe may close the program.
#[derive(Debug)]
struct Program {
    object: &'static str,
    name: String,
    descriptor: OwnedFd,
    calls: MappedArray<cpu_calls>,
}

/// What the kernel measured of a program: time in ns and calls.
type Measured = (u64, u64);

/// The programs of one recorder, in the order in which they were loaded.
#[derive(Debug, Default)]
pub(super) struct Programs(Vec<Rc<Program>>);

/// Sets the size of the maps in which the programs of an object count their calls, before the
/// object is loaded.
pub(super) fn size_call_counters(object: &mut OpenObject, cpus: usize) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        if map.name().to_string_lossy().starts_with(CALLS) {
            map.set_max_entries(cpus as u32)?;
        }
    }
    Ok(())
}

impl Shared {
    /// Adds the programs of a loaded object to those whose cost [`ENTRY`] reports.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] where a map is missing or cannot be mapped, or the process has
    /// no descriptors left.
    pub(super) fn add_programs(&self, object: &'static str, loaded: &Object) -> Result<(), NotRunning> {
        let mut programs = self.programs.borrow_mut();
        // An optional program without its hook is not loaded.
        for program in loaded.progs().filter(|program| program.autoload()) {
            let name = program.name().to_string_lossy().into_owned();
            let counter = format!("{CALLS}{name}");
            let map = loaded.maps().find(|map| map.name() == counter.as_str());
            let map = map.ok_or_else(|| unmapped(&io::Error::other(format!("no map {counter}"))))?;
            let descriptor = program.as_fd().try_clone_to_owned();
            programs.0.push(Rc::new(Program {
                object,
                name,
                descriptor: descriptor.map_err(|error| unmapped(&error))?,
                calls: MappedArray::new(&map)?,
            }));
        }
        Ok(())
    }
}

struct ProgramStats {
    host: Host,
    shared: Rc<Shared>,
    /// Each program and the file in which the kernel reports on it.
    programs: Vec<(Rc<Program>, Source)>,
    sets: Vec<(String, CpuSet)>,
    /// The kernel measures programs while it is open; `None` where the host always measures them.
    measuring: Option<OwnedFd>,
    opened: Instant,
    /// Of the program that does nothing; `None` where its time is a part of every call's.
    empty: Option<Measured>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    check_host(host)?;
    if shared.programs.borrow().0.is_empty() {
        return Err(NotRunning::Off(
            "no eBPF program is loaded whose cost it could report".to_owned(),
        ));
    }
    let mut stats = ProgramStats {
        measuring: measure(host)?,
        opened: Instant::now(),
        host: host.clone(),
        shared: Rc::clone(shared),
        programs: vec![],
        sets: options.cpusets.clone(),
        empty: None,
    };
    stats.open_new()?;
    let empty = load_object(
        host,
        "empty",
        EmptySkelBuilder::default(),
        |_, _| Ok(()),
        Skel::attach,
    );
    if let (Ok((empty, _)), Some(_)) = (empty, &stats.measuring) {
        (0..SLEEPS).for_each(|_| thread::sleep(Duration::from_micros(10)));
        let file = format!("self/fdinfo/{}", empty.progs.empty.as_fd().as_raw_fd());
        let read = fs::read(host.proc(&file)).ok();
        stats.empty = read.and_then(|file| parse(&file).ok());
    }
    Ok(Box::new(stats))
}

impl ProgramStats {
    /// Opens the files of the programs that were loaded since the last call, for another recording too.
    fn open_new(&mut self) -> Result<(), NotRunning> {
        for program in &self.shared.programs.borrow().0[self.programs.len()..] {
            let file = format!("self/fdinfo/{}", program.descriptor.as_raw_fd());
            let fix = "mount /proc of the pid namespace in which the recorder runs";
            let source = self.host.source(&file, fix)?.in_one_read();
            self.programs.push((Rc::clone(program), source));
        }
        Ok(())
    }
}

/// Makes the kernel measure programs while the descriptor is open.
fn measure(host: &Host) -> Result<Option<OwnedFd>, NotRunning> {
    let always = fs::read_to_string(host.proc("sys/kernel/bpf_stats_enabled"));
    if always.is_ok_and(|text| text.trim() == "1") {
        return Ok(None);
    }
    // SAFETY: the call takes a number and returns a new descriptor or an error.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        let error = io::Error::from_raw_os_error(-descriptor);
        let fix = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                "run as root, or with CAP_SYS_ADMIN and CAP_BPF, or set kernel.bpf_stats_enabled=1 with sysctl"
            }
            Some(libc::EMFILE) => RAISE_OPEN_FILES,
            _ => "it needs Linux 5.8 or newer",
        };
        return Err(NotRunning::Unavailable(format!(
            "ebpf programs: BPF_ENABLE_STATS: {error}; {fix}"
        )));
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

impl Program {
    /// The calls on the CPUs that `is_counted` accepts.
    fn calls(&self, is_counted: impl Fn(u32) -> bool) -> u64 {
        let by_cpu = (0..).map_while(|cpu| self.calls.counter(cpu, offset_of!(cpu_calls, count)));
        let counted = (0..).zip(by_cpu).filter(|(cpu, _)| is_counted(*cpu));
        sum(counted.map(|(_, calls)| calls))
    }
}

fn sum(counters: impl Iterator<Item = u64>) -> u64 {
    counters.fold(0, u64::wrapping_add)
}

impl Probe for ProgramStats {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.open_new()
            .map_err(|error| ProbeError::Source(error.to_string()))?;
        // Each recording has its own instance of some programs.
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (program, file) in &mut self.programs {
            let measured = file.parse(parse)?;
            let program: &Program = program;
            let names = (program.object, program.name.as_str());
            by_name.entry(names).or_default().push((program, measured));
        }
        for ((object, name), instances) in by_name {
            rows.row(&[object.as_bytes(), name.as_bytes(), b"all"]);
            rows.uint(sum(instances.iter().map(|(_, (time, _))| *time)));
            rows.uint(sum(instances.iter().map(|(_, (_, count))| *count)));
            rows.uint(sum(instances.iter().map(|(program, _)| program.calls(|_| true))));
            for (set, cpus) in &self.sets {
                rows.row(&[object.as_bytes(), name.as_bytes(), set.as_bytes()]);
                rows.nulls(2);
                let calls = |program: &Program| program.calls(|cpu| cpus.contains(cpu));
                rows.uint(sum(instances.iter().map(|(program, _)| calls(program))));
            }
        }
        if let Some((time, count)) = self.empty {
            rows.row(&[EMPTY.as_bytes(), EMPTY.as_bytes(), b"all"]);
            for number in [time, count, 0] {
                rows.uint(number);
            }
        }
        if self.opened.elapsed() >= MEASURED {
            self.measuring = None;
        }
        Ok(())
    }
}

/// Parses time (ns) and calls of a program from its file of `/proc/PID/fdinfo`
/// (`kernel/bpf/syscall.c`, `bpf_prog_show_fdinfo`; Linux 5.1 and newer).
///
/// ```text
/// prog_type: 26
/// run_time_ns: 4711
/// run_cnt: 23
/// ```
///
/// # Errors
/// When one of the two is missing or not a number: the descriptor is then not that of a program.
pub fn parse(file: &[u8]) -> Result<(u64, u64), ParseError> {
    let [time, count] = values(file, ["run_time_ns", "run_cnt"], &mut Odd::default());
    time.ok_or_else(|| empty("run_time_ns"))
        .and_then(|time| Ok((time, count.ok_or_else(|| empty("run_cnt"))?)))
}
