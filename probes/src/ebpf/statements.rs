//! Statement latency inside a MySQL or MariaDB server, by command, from the packet to the last byte of the answer.
//!
//! A breakpoint in the server's `dispatch_command` and one at its return cost it a microsecond or two a statement, in a virtual
//! machine ten and more: the probe runs only when it is named. The server may come later or be restarted; it is then looked for, and its binary read on a thread of its own.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::JoinHandle;

use libbpf_rs::Link;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use rustix::thread::CapabilitySet;

use super::Histograms;
use super::Words;
use super::dispatch;
use super::dispatch::Argument;
use super::dispatch::Function;
use super::histogram_cells;
use super::loaded;
use super::object;
use super::programs::size_calls;
use super::refused;
use super::roles::unmapped;
use super::skeletons::statements::StatementsSkel;
use super::skeletons::statements::StatementsSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_statements",
    "how long the server took for each command, by breakpoints that cost it microseconds a statement",
    &SCHEMA,
    open,
)
.on_request()
.live()
.keeps(
    // To attach to a server that comes later.
    CapabilitySet::BPF
        .union(CapabilitySet::PERFMON)
        .union(CapabilitySet::SYS_PTRACE),
);

static ENTITY: &[Text] = &[text("role"), text("command")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "sum_ns",
        Unit::Nanosecond,
        "time in all of them",
        "dispatch_command, entry to return",
    )
    .lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "commands by the time they took",
        "dispatch_command, entry to return",
    )
    .lower(),
    Column::gauge(
        "pid",
        Unit::One,
        "the process that is traced, the newest of its role",
        "/proc/PID/exe",
    ),
];

/// As in `statements.bpf.c`.
const SLOTS: usize = 16;

/// The commands that are told apart, by their numbers in the protocol (`include/my_command.h`); MariaDB's own is the last one.
const COMMANDS: [(u8, &str); SLOTS - 1] = [
    (2, "COM_INIT_DB"),
    (3, "COM_QUERY"),
    (4, "COM_FIELD_LIST"),
    (9, "COM_STATISTICS"),
    (14, "COM_PING"),
    (17, "COM_CHANGE_USER"),
    (22, "COM_STMT_PREPARE"),
    (23, "COM_STMT_EXECUTE"),
    (24, "COM_STMT_SEND_LONG_DATA"),
    (25, "COM_STMT_CLOSE"),
    (26, "COM_STMT_RESET"),
    (27, "COM_SET_OPTION"),
    (28, "COM_STMT_FETCH"),
    (31, "COM_RESET_CONNECTION"),
    (250, "COM_STMT_BULK_EXECUTE"),
];

/// A process and the program that it runs: a number may be used again, and a process may begin another program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    pid: u32,
    starttime: u64,
    binary: Binary,
}

/// Device and inode.
type Binary = (u64, u64);
type Found = Result<Option<Function>, String>;

/// A process that was looked at.
#[derive(Debug)]
struct Seen {
    role: String,
    identity: Identity,
    /// What traces it; nothing if it is no server.
    links: Vec<Link>,
}

struct Statements {
    host: Host,
    options: Options,
    programs: StatementsSkel<'static>,
    roles: Vec<String>,
    time: Histograms,
    happened: Words,
    seen: Vec<Seen>,
    /// The function in each binary that was read.
    binaries: Vec<(Binary, Option<Function>)>,
    looking: Option<(Binary, JoinHandle<Found>)>,
}

impl std::fmt::Debug for Statements {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Statements")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    super::ready(host)?;
    let roles = options.ebpf.roles(host, options)?.names().to_vec();
    let mut slot_of = [(SLOTS - 1) as u8; 256];
    for (slot, (number, _)) in COMMANDS.iter().enumerate() {
        slot_of[usize::from(*number)] = slot as u8;
    }
    let (programs, cpus) = loaded(host, "statements", |cpus| {
        let mut opened = StatementsSkelBuilder::default().open(object())?;
        size_calls(opened.open_object_mut(), cpus)?;
        let maps = &mut opened.maps;
        let storage = options
            .ebpf
            .keep_of_tasks(&mut maps.under_way, &mut maps.under_way_by_number)?;
        maps.statement_time
            .set_max_entries((cpus * roles.len() * SLOTS) as u32)?;
        maps.happened.set_max_entries(roles.len() as u32)?;
        options
            .ebpf
            .roles(host, options)
            .map_err(|error| libbpf_rs::Error::from(io::Error::other(error)))?
            .share(&mut maps.roles)?;
        if let Some(constants) = maps.rodata_data.as_deref_mut() {
            constants.slot_of = slot_of;
            constants.roles_named = roles.len() as u32;
            constants.task_storage = storage;
        }
        Ok((opened.load()?, cpus))
    })?;
    options.ebpf.account("statements", programs.object())?;
    let map = || {
        let time = Histograms::new(&programs.maps.statement_time, roles.len() * SLOTS, cpus)?;
        Ok((time, Words::new(&programs.maps.happened)?))
    };
    let (time, happened) = map().map_err(|error: io::Error| unmapped(&error))?;
    let mut probe = Statements {
        host: host.clone(),
        options: options.clone(),
        programs,
        roles,
        time,
        happened,
        seen: vec![],
        binaries: vec![],
        looking: None,
    };
    probe.begin_with_those_there()?;
    Ok(Box::new(probe))
}

impl Statements {
    /// Attaches to the servers that are there already, so that the first sample is of them.
    fn begin_with_those_there(&mut self) -> Result<(), NotRunning> {
        let processes = self.processes();
        for (_, pid) in &processes {
            if let Some(identity) = self.identity(*pid) {
                let function = dispatch::find(&self.exe(*pid)).map_err(|error| {
                    NotRunning::Unavailable(format!("{error}; run as root, or with CAP_SYS_PTRACE"))
                })?;
                self.binaries.push((identity.binary, function));
            }
        }
        self.follow(processes).map_err(NotRunning::Unavailable)?;
        let all_there = self
            .roles
            .iter()
            .all(|role| self.seen.iter().any(|seen| seen.role == *role));
        if all_there && self.seen.iter().all(|seen| seen.links.is_empty()) {
            return Err(NotRunning::Unavailable(
                "ebpf statements: no watched process exports dispatch_command; name a MySQL or MariaDB server with \
                 --process server=PID"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn processes(&self) -> Vec<(String, u32)> {
        self.options
            .ebpf
            .roles(&self.host, &self.options)
            .map(|roles| roles.processes().to_vec())
            .unwrap_or_default()
    }

    fn exe(&self, pid: u32) -> PathBuf {
        self.host.proc(&format!("{pid}/exe"))
    }

    /// `None` if the process is gone, or belongs to the kernel.
    fn identity(&self, pid: u32) -> Option<Identity> {
        let stat = fs::read_to_string(self.host.proc(&format!("{pid}/stat"))).ok()?;
        // proc_pid_stat(5): field 22; the name before it may hold anything, a bracket included.
        let (_, rest) = stat.rsplit_once(')')?;
        let starttime = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
        let exe = fs::metadata(self.exe(pid)).ok()?;
        Some(Identity {
            pid,
            starttime,
            binary: (exe.dev(), exe.ino()),
        })
    }

    /// Attaches to what is new among `processes` and lets go of what is gone.
    fn follow(&mut self, processes: Vec<(String, u32)>) -> Result<(), String> {
        let there: Vec<_> = processes
            .into_iter()
            .filter_map(|(role, pid)| Some((role, self.identity(pid)?)))
            .collect();
        let is_there = |seen: &mut Seen| {
            there
                .iter()
                .any(|(role, identity)| *role == seen.role && *identity == seen.identity)
        };
        let gone: Vec<_> = self.seen.extract_if(.., |seen| !is_there(seen)).collect();
        if !gone.is_empty() {
            // Taking a breakpoint back waits for other CPUs, which is nothing for a tick.
            drop(thread::Builder::new().spawn(move || drop(gone)));
        }
        self.take_found()?;
        for (role, identity) in there {
            if self.seen.iter().any(|seen| seen.identity == identity) {
                continue;
            }
            let known = self.binaries.iter().find(|(known, _)| *known == identity.binary);
            match known.map(|(_, function)| *function) {
                None => self.look(&identity),
                Some(function) => {
                    let links = function.map_or(Ok(vec![]), |function| self.attach(&identity, function));
                    // Also where that failed: it is not tried again and again.
                    let (links, failure) = match links {
                        Ok(links) => (links, None),
                        Err(error) => (vec![], Some(error)),
                    };
                    self.seen.push(Seen {
                        role,
                        identity,
                        links,
                    });
                    if let Some(failure) = failure {
                        return Err(failure);
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins to read the binary of a process, unless another one is being read.
    fn look(&mut self, identity: &Identity) {
        if self.looking.is_none() {
            let exe = self.exe(identity.pid);
            let reading = thread::Builder::new()
                .name("read-binary".to_owned())
                .spawn(move || dispatch::find(&exe));
            self.looking = reading.ok().map(|reading| (identity.binary, reading));
        }
    }

    /// Takes what was found in the binary that was read, if that has ended.
    fn take_found(&mut self) -> Result<(), String> {
        let ended = self.looking.take_if(|(_, reading)| reading.is_finished());
        if let Some((binary, reading)) = ended {
            let found = reading.join().unwrap_or_else(|_| {
                Err("ebpf statements: the binary's reader has ended; please report this".to_owned())
            });
            self.binaries.push((binary, found.clone().unwrap_or(None)));
            found?;
        }
        Ok(())
    }

    fn attach(&self, identity: &Identity, function: Function) -> Result<Vec<Link>, String> {
        let (pid, exe) = (identity.pid.cast_signed(), self.exe(identity.pid));
        let programs = &self.programs.progs;
        let entry = match function.argument {
            Argument::First => &programs.first_argument,
            Argument::Third => &programs.third_argument,
        };
        // The return first: an entry that is seen is one whose return will be.
        let attach = |exe: &Path| {
            Ok(vec![
                programs.returned.attach_uprobe(true, pid, exe, function.offset)?,
                entry.attach_uprobe(false, pid, exe, function.offset)?,
            ])
        };
        attach(&exe).map_err(|error| refused("statements", &error).to_string())
    }

    fn traced(&self, role: &str) -> Option<u64> {
        let traced = |seen: &&Seen| seen.role == role && !seen.links.is_empty();
        self.seen
            .iter()
            .rfind(traced)
            .map(|seen| seen.identity.pid.into())
    }
}

impl Probe for Statements {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let processes = self.processes();
        self.follow(processes).map_err(ProbeError::Source)?;
        for role in 0..self.roles.len() {
            let traced = self.traced(&self.roles[role]);
            for slot in 0..SLOTS {
                let marks = self.happened.element(role).get(slot / 8);
                let marks = marks.map_or(0, |marks| marks.load(Ordering::Relaxed));
                if marks.to_ne_bytes()[slot % 8] == 0 {
                    continue;
                }
                let name = COMMANDS.get(slot).map_or("other", |(_, name)| name);
                rows.row(&[self.roles[role].as_bytes(), name.as_bytes()]);
                let (sum, buckets) = self.time.merged(role * SLOTS + slot);
                histogram_cells(rows, sum, buckets);
                rows.uint_or_null(traced);
            }
        }
        Ok(())
    }
}
