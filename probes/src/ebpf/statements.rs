//! Measures statement latency in a MySQL or MariaDB server by command, from the packet to the last
//! byte of the answer.
//!
//! The uprobe and the uretprobe on the server's `dispatch_command` cost the server one or two
//! microseconds a statement, in a virtual machine ten or more: the probe is not in the standard
//! set. The server can start later or restart; the probe then finds it at the next sample, and
//! the helper reads its binary.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use libbpf_rs::Link;

use super::prelude::*;
use super::refused;
use super::skeletons::statements::StatementsSkel;
use super::skeletons::statements::StatementsSkelBuilder;
use super::skeletons::statements::types::limits as Limits;
use super::skeletons::statements::types::seen_commands;
use crate::lookup::Lookup;
use crate::symbols::Answer;
use crate::symbols::Dispatch;
use crate::symbols::Request;
use crate::symbols::Symbols;
use crate::symbols::elf::Argument;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_statements",
    "latency of each command in the server; the uprobes cost the server microseconds per statement",
    &SCHEMA,
    open,
)
.on_request();

static ENTITY: &[Text] = &[text("role"), text("command")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns", "time in these commands", "dispatch_command, entry to return", lower;
    buckets(Nanosecond) "buckets",
        "commands by the time they took", "dispatch_command, entry to return", lower;
    gauge(One) "pid", "the traced process, the newest of its role", "/proc/PID/exe";
};

/// The time that reading the programs of all processes may take before the first sample.
const READ_AT_START: Duration = Duration::from_secs(10);

/// The time that it may take in a tick; the rest is read in later ticks.
const READ_IN_TICK: Duration = Duration::from_millis(50);

const SLOTS: usize = Limits::SLOTS.0 as usize;

/// The commands that have rows, by their numbers in the protocol (`include/my_command.h`). Only
/// MariaDB has the last one.
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

/// A process and the program that it runs. The kernel reuses process IDs, and a process can execute
/// another program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    pid: u32,
    starttime: u64,
    binary: Binary,
}

/// Device and inode.
type Binary = (u64, u64);

/// Role and ID of processes, and the same with the identity of those that have one.
type Identities = Lookup<Vec<(String, u32)>, Vec<(String, Identity)>>;

/// A watched process whose binary was read.
struct Examined {
    role: String,
    identity: Identity,
    /// The uprobes; none if it is not a server.
    links: Vec<Link>,
}

struct Statements {
    host: Host,
    identities: Identities,
    programs: StatementsSkel<'static>,
    roles: Rc<Roles>,
    names: Vec<String>,
    time: Histograms,
    seen_commands: MappedArray<seen_commands>,
    examined: Vec<Examined>,
    /// The function in each binary that was read.
    binaries: Vec<(Binary, Option<Dispatch>)>,
    symbols: Symbols,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    check_host(host)?;
    let roles = shared.roles(host, options)?;
    let names = roles.names().to_vec();
    let symbols = options.symbols.clone();
    let symbols = symbols
        .ok_or_else(|| NotRunning::Unavailable("ebpf statements: no helper reads symbols".to_owned()))?;
    let mut slot_of = [(SLOTS - 1) as u8; 256];
    for (slot, (number, _)) in COMMANDS.iter().enumerate() {
        slot_of[usize::from(*number)] = slot as u8;
    }
    let (programs, cpus) = load_object(
        host,
        "statements",
        StatementsSkelBuilder::default(),
        |opened, cpus| {
            let maps = &mut opened.maps;
            let use_task_storage = shared.choose_task_map(&mut maps.commands, &mut maps.commands_by_tid)?;
            maps.statement_time
                .set_max_entries((cpus * names.len() * SLOTS) as u32)?;
            maps.seen_commands.set_max_entries(names.len() as u32)?;
            roles.share(&mut maps.roles)?;
            if let Some(constants) = maps.rodata_data.as_deref_mut() {
                constants.slot_of = slot_of;
                constants.role_count = names.len() as u32;
                constants.use_task_storage = use_task_storage;
            }
            Ok(())
        },
        // Attached to each server.
        |_| Ok(()),
    )?;
    shared.add_programs("statements", programs.object())?;
    let of_lookup = host.clone();
    let mut probe = Statements {
        host: host.clone(),
        identities: Lookup::new(move |processes: Vec<(String, u32)>| {
            let identities = processes.into_iter();
            let identities = identities.filter_map(|(role, pid)| Some((role, identity(&of_lookup, pid)?)));
            identities.collect()
        }),
        time: Histograms::new(&programs.maps.statement_time, names.len() * SLOTS, cpus)?,
        seen_commands: MappedArray::new(&programs.maps.seen_commands)?,
        programs,
        roles,
        names,
        examined: vec![],
        binaries: vec![],
        symbols,
    };
    probe.attach_to_running_servers()?;
    Ok(Box::new(probe))
}

fn exe(host: &Host, pid: u32) -> PathBuf {
    host.proc(&format!("{pid}/exe"))
}

/// `None` if the process has exited, or belongs to the kernel.
fn identity(host: &Host, pid: u32) -> Option<Identity> {
    let stat = fs::read_to_string(host.proc(&format!("{pid}/stat"))).ok()?;
    // proc_pid_stat(5): field 22. The name before it can contain any character, including brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    let starttime = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let exe = fs::metadata(exe(host, pid)).ok()?;
    Some(Identity {
        pid,
        starttime,
        binary: (exe.dev(), exe.ino()),
    })
}

impl Statements {
    /// Attaches to the servers that run already, so that the first sample has their values.
    fn attach_to_running_servers(&mut self) -> Result<(), NotRunning> {
        let processes = self.roles.processes();
        self.symbols.allow(READ_AT_START);
        self.follow(processes).map_err(NotRunning::Unavailable)?;
        let is_running = |role: &String| self.examined.iter().any(|process| process.role == *role);
        let is_traced = |process: &Examined| !process.links.is_empty();
        if self.names.iter().all(is_running) && !self.examined.iter().any(is_traced) {
            return Err(NotRunning::Unavailable(
                "ebpf statements: no watched process exports dispatch_command; name a MySQL or MariaDB server with \
                 --process server=PID"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn exe(&self, pid: u32) -> PathBuf {
        exe(&self.host, pid)
    }

    /// Attaches to new servers among `processes` and detaches from processes that have exited.
    fn follow(&mut self, processes: Vec<(String, u32)>) -> Result<(), String> {
        let Some(running) = self.identities.ask(processes) else {
            return Ok(());
        };
        let is_running = |process: &mut Examined| {
            running
                .iter()
                .any(|(role, identity)| *role == process.role && *identity == process.identity)
        };
        let exited: Vec<_> = self
            .examined
            .extract_if(.., |process| !is_running(process))
            .collect();
        if !exited.is_empty() {
            // Removing a uprobe waits for other CPUs, which is too long for a tick.
            drop(thread::Builder::new().spawn(move || drop(exited)));
        }
        for (role, identity) in running {
            if self.examined.iter().any(|process| process.identity == identity) {
                continue;
            }
            match self.function(&identity)? {
                None => {}
                Some(function) => {
                    let links = function.map_or(Ok(vec![]), |function| self.attach(&identity, function));
                    // A process to which attaching failed is added as well: it is not tried again.
                    let (links, failure) = match links {
                        Ok(links) => (links, None),
                        Err(error) => (vec![], Some(error)),
                    };
                    self.examined.push(Examined {
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

    /// The function in the binary of a process; the outer `None` while it is not read.
    fn function(&mut self, identity: &Identity) -> Result<Option<Option<Dispatch>>, String> {
        if let Some((_, function)) = self.binaries.iter().find(|(known, _)| *known == identity.binary) {
            return Ok(Some(*function));
        }
        let function = match self.symbols.ask(&Request::Dispatch { pid: identity.pid }) {
            Answer::Later | Answer::Busy => return Ok(None),
            Answer::Ready(function, _) => Ok(function),
            Answer::Failed(reason) => {
                let is_denied = ["(os error 1)", "(os error 13)"]
                    .iter()
                    .any(|number| reason.contains(number));
                let fix = if is_denied {
                    "run as root, or with CAP_SYS_PTRACE"
                } else {
                    "name a MySQL or MariaDB server with --process server=PID"
                };
                Err(format!("{}: {reason}; {fix}", self.exe(identity.pid).display()))
            }
        };
        // A binary that cannot be read is not tried again.
        self.binaries
            .push((identity.binary, function.clone().unwrap_or(None)));
        function.map(Some)
    }

    fn attach(&self, identity: &Identity, function: Dispatch) -> Result<Vec<Link>, String> {
        let (pid, exe) = (identity.pid.cast_signed(), self.exe(identity.pid));
        let offset = usize::try_from(function.offset).map_err(|error| error.to_string())?;
        let programs = &self.programs.progs;
        let entry = match function.argument {
            Argument::First => &programs.first_argument,
            Argument::Third => &programs.third_argument,
        };
        // The return first: then the return of every measured entry is measured as well.
        let attach = || {
            Ok(vec![
                programs.returned.attach_uprobe(true, pid, &exe, offset)?,
                entry.attach_uprobe(false, pid, &exe, offset)?,
            ])
        };
        attach().map_err(|error| refused("statements", &error).to_string())
    }

    fn traced(&self, role: &str) -> Option<u64> {
        self.examined
            .iter()
            .rfind(|process| process.role == role && !process.links.is_empty())
            .map(|process| process.identity.pid.into())
    }
}

impl Probe for Statements {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let processes = self.roles.processes();
        self.symbols.allow(READ_IN_TICK);
        self.follow(processes).map_err(ProbeError::Source)?;
        for (role, role_name) in self.names.iter().enumerate() {
            let traced = self.traced(role_name);
            for (slot, seen) in self.seen_commands.bytes(role).iter().enumerate() {
                if seen.load(Ordering::Relaxed) == 0 {
                    continue;
                }
                let name = COMMANDS.get(slot).map_or("other", |(_, name)| name);
                rows.row(&[role_name.as_bytes(), name.as_bytes()]);
                let (sum, buckets) = self.time.merged(role * SLOTS + slot);
                histogram_cells(rows, sum, buckets);
                rows.uint_or_null(traced);
            }
        }
        Ok(())
    }
}
