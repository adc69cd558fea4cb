//! State shared by the daemon's threads: processes, lease, reason to end, and the jobs for the main
//! thread. Only the main thread forks, because PDEATHSIG follows the forking thread, and only it
//! reaps.

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
use crate::interrupts::Moved;
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
    /// The daemon was killed and the guard cleaned up.
    Killed,
}

/// The state of a process.
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

/// The state under the lock.
#[derive(Debug)]
pub struct State {
    pub started: SystemTime,
    pub lease: Duration,
    pub last_request: Instant,
    /// Requests in progress; they suspend the lease.
    pub open_requests: usize,
    pub note: Map<String, Value>,
    /// In start order.
    pub processes: Vec<Process>,
    pub namespaces: Vec<NetNs>,
    pub mounts: Vec<PathBuf>,
    pub interrupts: Vec<Moved>,
    pub owned: Vec<PathBuf>,
    pub ending: Option<Reason>,
    pub ended: bool,
    /// Resources that could not be removed.
    pub left: Vec<String>,
}

/// A request for the main thread.
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
    /// Writing a byte wakes the main thread.
    wake: UnixStream,
}

impl Shared {
    /// The state of a new supervisor.
    pub fn new(lease: Duration, wake: UnixStream) -> Self {
        let state = State {
            started: SystemTime::now(),
            lease,
            last_request: Instant::now(),
            open_requests: 0,
            note: Map::new(),
            processes: Vec::new(),
            namespaces: Vec::new(),
            mounts: Vec::new(),
            interrupts: Vec::new(),
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

    /// Locks the state, also after a panic of another thread: the cleanup must run.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lock until a change or the end of the time.
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

    /// Wakes the main thread. If the pipe is full, a wake-up is pending.
    pub fn wake_main(&self) {
        drop((&self.wake).write(&[0]));
    }

    /// Passes a job to the main thread.
    pub fn push_job(&self, job: Job) {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(job);
        self.wake_main();
    }

    /// Removes the oldest job.
    pub fn next_job(&self) -> Option<Job> {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Starts the shutdown, unless it has started already.
    pub fn begin_end(&self, reason: Reason) {
        self.lock().ending.get_or_insert(reason);
        self.wake_main();
        self.announce();
    }
}

impl State {
    /// The newest process of this name.
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
            [] => bail!("no process `{name}`: this supervisor has none; start it with `run`"),
            _ => bail!("no process `{name}`; this supervisor has: {}", names.join(", ")),
        }
    }

    /// The process with this ID.
    pub fn get(&self, id: ProcessId) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }

    /// True until the process is reaped.
    pub fn is_running(&self, id: ProcessId) -> bool {
        self.get(id)
            .is_some_and(|process| process.state == ProcessState::Running)
    }

    /// Time until the lease expires.
    pub fn lease_left(&self) -> Duration {
        if self.open_requests > 0 {
            return self.lease;
        }
        self.lease.saturating_sub(self.last_request.elapsed())
    }
}

impl Process {
    /// The reply to `wait` and `stop`.
    pub fn report(&self) -> Value {
        let mut report = json!({"name": self.name, "pid": self.id.pid});
        self.state.describe(&mut report);
        report["stderr_tail"] = json!(self.stderr.tail());
        report["placement"] = json!(self.placement);
        report
    }
}

impl ProcessState {
    /// Adds `state` and, after the end, `code` or `signal`.
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
