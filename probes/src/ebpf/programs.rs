//! Reads the time and calls of each of the recorder's own eBPF programs, as the kernel accounts for them.
//!
//! The kernel measures programs only while a process asks for it (`BPF_ENABLE_STATS`): it then reads the clock twice at each call
//! of every program on the host. It reports one time for all CPUs. Each program counts its own calls by CPU, so that the share of
//! a set of CPUs in the calls is known. The time excludes the cost of the hook itself, such as the trap of a uprobe.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::Object;
use libbpf_rs::OpenObject;
use libbpf_rs::libbpf_sys;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Shared;
use super::Words;
use super::ready;
use super::roles::unmapped;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;
use crate::options::CpuSet;
use crate::procfs::fields::Cursor;
use crate::procfs::fields::empty;

/// The probe's line in the registry; it comes after all probes that load programs.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_programs",
    "time and calls of the recorder's own eBPF programs",
    &SCHEMA,
    open,
)
.live();

static ENTITY: &[Text] = &[text("object"), text("program"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "run_time_ns",
        Unit::Nanosecond,
        "time in the program on all CPUs, since the recorder started; null on rows of a CPU set",
        "run_time_ns of /proc/self/fdinfo, under BPF_ENABLE_STATS",
    )
    .lower(),
    Column::counter(
        "run_cnt",
        Unit::One,
        "calls that this time covers; null on rows of a CPU set",
        "run_cnt of /proc/self/fdinfo, under BPF_ENABLE_STATS",
    )
    .lower(),
    Column::counter(
        "calls",
        Unit::One,
        "calls on these CPUs since the program was attached",
        "counted by the program itself, by CPU",
    )
    .lower(),
];

/// The name of the map in which a program counts its calls: `COUNTED` in `loadprint.bpf.h`.
const CALLS: &str = "calls_";

/// A program that was loaded. The descriptor is a duplicate: the program can be detached and closed meanwhile.
#[derive(Debug)]
struct Program {
    object: &'static str,
    name: String,
    descriptor: OwnedFd,
    calls: Words,
}

/// The programs of one recorder, in the order in which they were loaded.
#[derive(Debug, Default)]
pub(super) struct Programs(Vec<Rc<Program>>);

/// Sizes the maps in which the programs of an object count their calls, before it is loaded.
pub(super) fn size_calls(object: &mut OpenObject, cpus: usize) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        if map.name().to_string_lossy().starts_with(CALLS) {
            map.set_max_entries(cpus as u32)?;
        }
    }
    Ok(())
}

impl Shared {
    /// Takes note of the programs of an object that was loaded, so that [`ENTRY`] can report their cost.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] where a map cannot be mapped, or the process has no descriptors left.
    pub(super) fn account(&self, object: &'static str, loaded: &Object) -> Result<(), NotRunning> {
        let mut programs = self.programs.borrow_mut();
        for program in loaded.progs() {
            let name = program.name().to_string_lossy().into_owned();
            let own = format!("{CALLS}{name}");
            let Some(map) = loaded.maps().find(|map| map.name() == own.as_str()) else {
                continue;
            };
            let opened = || -> io::Result<_> {
                Ok(Program {
                    object,
                    name,
                    descriptor: program.as_fd().try_clone_to_owned()?,
                    calls: Words::new(&map)?,
                })
            };
            programs
                .0
                .push(Rc::new(opened().map_err(|error| unmapped(&error))?));
        }
        Ok(())
    }
}

/// A program and the file in which the kernel reports on it.
#[derive(Debug)]
struct Accounted {
    program: Rc<Program>,
    file: Source,
}

#[derive(Debug)]
struct Accounts {
    programs: Vec<Accounted>,
    sets: Vec<(String, CpuSet)>,
    /// While it is open the kernel measures programs; none where the host measures them anyway.
    _measuring: Option<OwnedFd>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    ready(host)?;
    let loaded = options.ebpf.programs.borrow();
    if loaded.0.is_empty() {
        return Err(NotRunning::Off(
            "no eBPF program is loaded, so there is none to account for".to_owned(),
        ));
    }
    let measuring = measure(host)?;
    let open = |program: &Rc<Program>| {
        let file = format!("self/fdinfo/{}", program.descriptor.as_raw_fd());
        let file = host
            .source(&file, "it needs /proc of this process")?
            .in_one_read();
        Ok(Accounted {
            program: Rc::clone(program),
            file,
        })
    };
    Ok(Box::new(Accounts {
        programs: loaded.0.iter().map(open).collect::<Result<_, NotRunning>>()?,
        sets: options.cpusets.clone(),
        _measuring: measuring,
    }))
}

/// Makes the kernel measure programs as long as the descriptor is open.
fn measure(host: &Host) -> Result<Option<OwnedFd>, NotRunning> {
    let always = fs::read_to_string(host.proc("sys/kernel/bpf_stats_enabled"));
    if always.is_ok_and(|text| text.trim() == "1") {
        return Ok(None);
    }
    // SAFETY: the call takes a number and gives a new descriptor, or an error.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        return Err(NotRunning::Unavailable(format!(
            "ebpf programs: BPF_ENABLE_STATS: {}; run as root, or with CAP_SYS_ADMIN besides CAP_BPF, or set \
             kernel.bpf_stats_enabled=1 with sysctl",
            io::Error::from_raw_os_error(-descriptor)
        )));
    }
    // SAFETY: the kernel just gave it, and nothing else has it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

impl Program {
    /// Calls on the CPUs that `chosen` accepts.
    fn calls(&self, chosen: impl Fn(u32) -> bool) -> u64 {
        (0..)
            .map_while(|cpu: u32| Some((cpu, self.calls.element(cpu as usize).first()?)))
            .filter(|(cpu, _)| chosen(*cpu))
            .fold(0, |sum, (_, calls)| {
                sum.wrapping_add(calls.load(Ordering::Relaxed))
            })
    }
}

impl Probe for Accounts {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for Accounted { program, file } in &mut self.programs {
            let (time, count) = file.parse(parse)?;
            let (object, name) = (program.object.as_bytes(), program.name.as_bytes());
            rows.row(&[object, name, b"all"]);
            rows.uint(time);
            rows.uint(count);
            rows.uint(program.calls(|_| true));
            for (set, cpus) in &self.sets {
                rows.row(&[object, name, set.as_bytes()]);
                rows.nulls(2);
                rows.uint(program.calls(|cpu| cpus.contains(cpu)));
            }
        }
        Ok(())
    }
}

/// Parses the time (ns) and the calls of a program from its file of `/proc/PID/fdinfo` (`kernel/bpf/syscall.c`,
/// `bpf_prog_show_fdinfo`; Linux 5.1 and newer).
///
/// ```text
/// prog_type: 26
/// run_time_ns: 4711
/// run_cnt: 23
/// ```
///
/// # Errors
/// When one of the two is missing or not a number: the file is then not of a program.
pub fn parse(file: &[u8]) -> Result<(u64, u64), ParseError> {
    let (mut time, mut count) = (None, None);
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        match cursor.until(b':') {
            Some(b"run_time_ns") => time = Some(cursor.need_uint("run_time_ns")?),
            Some(b"run_cnt") => count = Some(cursor.need_uint("run_cnt")?),
            _ => {}
        }
        cursor.next_line();
    }
    time.ok_or_else(|| empty("run_time_ns"))
        .and_then(|time| Ok((time, count.ok_or_else(|| empty("run_cnt"))?)))
}
