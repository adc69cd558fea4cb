//! What the daemon's threads share: the processes, the lease, the reason to end, and the work that only the main
//! thread may do (it forks, because PDEATHSIG follows the forking thread, and it alone reaps).

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use anyhow::Result;
use anyhow::bail;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::cpus::CpuSet;
use crate::netns::NetNs;
use crate::output::Output;
use crate::placement::Placement;
use crate::procfs::ProcessId;
use crate::protocol::Reply;
use crate::protocol::Request;
use crate::signals;

/// Why a supervisor ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Lease,
    Controller,
    Signal,
    End,
    /// The daemon was killed; its guard cleaned up.
    Killed,
}

/// How a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    Running,
    Exited(i32),
    Signalled(i32),
}

/// A process that `run` started.
#[derive(Debug)]
pub struct Process {
    pub name: String,
    pub role: Option<String>,
    pub id: ProcessId,
    pub cpus: Option<CpuSet>,
    pub placement: Option<Placement>,
    pub stop_signal: Signal,
    pub stop_timeout: Duration,
    pub stdout: Output,
    pub stderr: Output,
    pub state: ProcessState,
}

/// Everything under the lock.
#[derive(Debug)]
pub struct State {
    pub started: SystemTime,
    pub lease: Duration,
    pub last_heard: Instant,
    /// Requests that are being answered; the lease does not run out under them.
    pub open_requests: usize,
    pub note: Map<String, Value>,
    /// In start order.
    pub processes: Vec<Process>,
    pub namespaces: Vec<NetNs>,
    pub mounts: Vec<PathBuf>,
    pub owned: Vec<PathBuf>,
    pub ending: Option<Reason>,
    pub ended: bool,
    /// What could not be removed.
    pub left: Vec<String>,
}

/// Work for the main thread.
#[derive(Debug)]
pub struct Job {
    pub request: Request,
    pub reply: SyncSender<Reply>,
}

/// Shared by all threads of the daemon.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    jobs: Mutex<VecDeque<Job>>,
    /// A byte written here wakes the main thread.
    wake: UnixStream,
}

impl Shared {
    /// A supervisor that holds nothing yet.
    pub fn new(lease: Duration, wake: UnixStream) -> Self {
        let state = State {
            started: SystemTime::now(),
            lease,
            last_heard: Instant::now(),
            open_requests: 0,
            note: Map::new(),
            processes: Vec::new(),
            namespaces: Vec::new(),
            mounts: Vec::new(),
            owned: Vec::new(),
            ending: None,
            ended: false,
            left: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            jobs: Mutex::default(),
            wake,
        }
    }

    /// The state. A thread that panicked must not keep the others from cleaning up.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the lock up until something changes or the time has passed.
    pub fn wait_change<'a>(&self, guard: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed
            .wait_timeout(guard, time)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// Wakes every thread that waits for a change.
    pub fn announce(&self) {
        self.changed.notify_all();
    }

    /// Wakes the main thread. A full pipe means that it has been woken already.
    pub fn wake_main(&self) {
        drop((&self.wake).write(&[0]));
    }

    /// Hands work to the main thread.
    pub fn push_job(&self, job: Job) {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(job);
        self.wake_main();
    }

    /// The oldest work there is.
    pub fn next_job(&self) -> Option<Job> {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Begins the end, unless it has begun for another reason.
    pub fn begin_end(&self, reason: Reason) {
        self.lock().ending.get_or_insert(reason);
        self.wake_main();
        self.announce();
    }
}

impl State {
    /// The process of that name; the newest where a name was used again.
    pub fn find(&self, name: &str) -> Result<&Process> {
        if let Some(process) = self.processes.iter().rev().find(|process| process.name == name) {
            return Ok(process);
        }
        let names: Vec<&str> = self
            .processes
            .iter()
            .map(|process| process.name.as_str())
            .collect();
        match names.as_slice() {
            [] => bail!("no process `{name}`: none was started here"),
            _ => bail!("no process `{name}`; there are: {}", names.join(", ")),
        }
    }

    /// The very process, also after its name was used again.
    pub fn get(&self, id: ProcessId) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }

    /// Whether the process has not been reaped.
    pub fn is_running(&self, id: ProcessId) -> bool {
        self.get(id)
            .is_some_and(|process| process.state == ProcessState::Running)
    }

    /// Time left before the lease runs out.
    pub fn lease_left(&self) -> Duration {
        if self.open_requests > 0 {
            return self.lease;
        }
        self.lease.saturating_sub(self.last_heard.elapsed())
    }
}

impl Process {
    /// The answer of `wait` and `stop`.
    pub fn report(&self) -> Value {
        let mut report = json!({"name": self.name, "pid": self.id.pid});
        self.state.describe(&mut report);
        report["stderr_tail"] = json!(self.stderr.tail());
        report["placement"] = json!(self.placement);
        report
    }
}

impl ProcessState {
    /// Adds `state` and, where it has ended, `code` or `signal`.
    pub fn describe(self, report: &mut Value) {
        match self {
            Self::Running => report["state"] = json!("running"),
            Self::Exited(code) => {
                report["state"] = json!("exited");
                report["code"] = json!(code);
            }
            Self::Signalled(signal) => {
                report["state"] = json!("signalled");
                report["signal"] = json!(signals::name(signal));
            }
        }
    }
}
