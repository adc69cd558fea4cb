//! Measures the time of the watched threads by state, of those that serve a connection separately
//! from the others.

use super::Scheduler;
use crate::ebpf::prelude::*;
use crate::ebpf::skeletons::sched::types::counts;
use crate::ebpf::skeletons::sched::types::direction as Direction;
use crate::ebpf::skeletons::sched::types::file_kind as FileKind;
use crate::ebpf::skeletons::sched::types::state as State;
use crate::ebpf::skeletons::sched::types::state_time;
use crate::ebpf::skeletons::sched::types::thread_class as ThreadClass;
use crate::ebpf::skeletons::sched::types::thread_time;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_states",
    "time of the watched threads by state, connection threads apart",
    &SCHEMA,
    open,
)
.gated();

static ENTITY: &[Text] = &[text("role"), text("threads"), text("state")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "time_ns",
        "time in the state, of periods that have ended",
        "sched_switch, by the run queue's clock; on CPU: sum_exec_runtime", lower;
    counter(One) "count", "periods in the state that have ended", "sched_switch", lower;
    counter(Nanosecond) "user_ns",
        "user time; null except on the CPU", "utime of the task, which most kernels sample by tick", lower;
    counter(Nanosecond) "system_ns",
        "system time; null except on the CPU", "stime of the task, which most kernels sample by tick", lower;
};

const STATES: usize = State::STATES.0 as usize;
const ON_CPU: usize = State::ON_CPU.0 as usize;

/// The names of the classes of threads.
pub(super) const CLASSES: [&str; ThreadClass::THREAD_CLASSES.0 as usize] = {
    let mut names = [""; ThreadClass::THREAD_CLASSES.0 as usize];
    names[ThreadClass::WITH_CONNECTION.0 as usize] = "connection";
    names[ThreadClass::WITHOUT_CONNECTION.0 as usize] = "other";
    names
};

const NAMES: &[(State, &str)] = &[
    (State::ON_CPU, "on CPU"),
    (State::STOLEN, "stolen"),
    (State::RUN_QUEUE, "run queue"),
    (State::THROTTLED, "throttled"),
    (State::PAUSE_QUEUE, "run queue after pause"),
    (State::CLIENT_WAIT, "client"),
    (State::SEND_WAIT, "sending"),
    (State::NETWORK_WAIT, "network"),
    (State::LOCK_WAIT, "lock"),
    (State::NO_CONNECTION, "no connection"),
    (State::SLEEP_WAIT, "sleep"),
    (State::OTHER_WAIT, "other"),
    (State::STOPPED_WAIT, "stopped"),
    (State::MEMORY_WAIT, "memory"),
    (State::FAULT_WAIT, "page fault"),
];

const DIRECTIONS: &[(Direction, &str)] = &[
    (Direction::READ, "read"),
    (Direction::WRITE, "write"),
    (Direction::FLUSH, "flush"),
];

const FILE_KINDS: &[(FileKind, &str)] = &[
    (FileKind::TABLESPACE, "tablespace"),
    (FileKind::REDO_LOG, "redo log"),
    (FileKind::BINARY_LOG, "binary log"),
    (FileKind::DOUBLEWRITE, "doublewrite"),
    (FileKind::UNDO, "undo"),
    (FileKind::TEMPORARY, "temporary"),
    (FileKind::OTHER_FILE, "other file"),
];

/// The names of all states, by their number in the kernel.
fn state_names() -> Vec<String> {
    let mut names = vec![String::new(); STATES];
    for (state, name) in NAMES {
        names[state.0 as usize] = (*name).to_owned();
    }
    for (direction, verb) in DIRECTIONS {
        for (kind, file) in FILE_KINDS {
            let state = State::FILE_WAIT.0 + direction.0 * FileKind::FILE_KINDS.0 + kind.0;
            names[state as usize] = format!("{verb} {file}");
        }
    }
    names
}

struct States {
    names: Vec<String>,
    scheduler: Rc<Scheduler>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    check_host(host)?;
    shared.roles(host, options)?;
    Ok(Box::new(States {
        names: state_names(),
        scheduler: shared.scheduler(host, options)?,
    }))
}

impl States {
    /// A counter of one role and class, over all CPUs.
    fn counter(&self, role: usize, class: usize, offset: usize) -> u64 {
        let times = offset_of!(counts, times) + class * size_of::<thread_time>();
        let elements = self.scheduler.elements(1 + role);
        self.scheduler.counts.sum(elements, times + offset)
    }
}

impl Probe for States {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.scheduler.refresh();
        for (role, role_name) in self.scheduler.names.iter().enumerate() {
            for (class, threads) in CLASSES.iter().enumerate() {
                for (state, name) in self.names.iter().enumerate() {
                    let offset = offset_of!(thread_time, states) + state * size_of::<state_time>();
                    let count = self.counter(role, class, offset + offset_of!(state_time, count));
                    if count == 0 {
                        continue;
                    }
                    rows.row(&[role_name.as_bytes(), threads.as_bytes(), name.as_bytes()]);
                    rows.uint(self.counter(role, class, offset + offset_of!(state_time, time_ns)));
                    rows.uint(count);
                    if state == ON_CPU {
                        rows.uint(self.counter(role, class, offset_of!(thread_time, user_ns)));
                        rows.uint(self.counter(role, class, offset_of!(thread_time, system_ns)));
                    } else {
                        rows.nulls(2);
                    }
                }
            }
        }
        Ok(())
    }
}
