//! State shared by the daemon's threads: processes, lease, reason to end, and the jobs for the main
//! thread. Only the main thread forks, because PDEATHSIG follows the forking thread, and only it
//! reaps.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use anyhow::Context;
use anyhow::Result;
use loadprint_cpulist::CpuSet;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use signal_hook::low_level;

use crate::groups::Group;
use crate::memory::Schedule;
use crate::netns::NetNs;
use crate::output::Output;
use crate::placement::Placement;
use crate::protocol::Reply;
use crate::protocol::Request;
use crate::state_dir::OwnedResources;

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
    /// Of the processes that this supervisor started; pids are reused.
    pub number: u64,
    pub pid: u32,
    pub group: Arc<Group>,
    pub cpus: Option<CpuSet>,
    pub placement: Option<Placement>,
    pub stop_timeout: Duration,
    pub stdout: Output,
    pub stderr: Output,
    /// `Running` until no process is left in its group.
    pub state: ProcessState,
    /// How and when it exited; from then on another process may have its pid.
    pub exit: Option<(ProcessState, Instant)>,
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
    pub resources: OwnedResources,
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
    pub fn new(lease: Duration, wake: UnixStream, resources: OwnedResources) -> Self {
        let state = State {
            started: SystemTime::now(),
            lease,
            last_request: Instant::now(),
            open_requests: 0,
            note: Map::new(),
            processes: Vec::new(),
            namespaces: Vec::new(),
            resources,
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
        let found = self.processes.iter().rev().find(|process| process.name == name);
        let names = self.processes.iter().map(|process| process.name.as_str());
        found.with_context(|| unknown(&format!("process `{name}`"), names, "start it with `run`"))
    }

    /// The network namespace of this name.
    pub fn find_netns(&self, name: &str) -> Result<&NetNs> {
        let found = self.namespaces.iter().find(|netns| netns.name == name);
        let names = self.namespaces.iter().map(|netns| netns.name.as_str());
        let what = format!("network namespace `{name}`");
        found.with_context(|| unknown(&what, names, "create it with `netns`"))
    }

    /// The process with this number.
    pub fn get(&self, number: u64) -> Option<&Process> {
        self.processes.iter().find(|process| process.number == number)
    }

    /// The reply to `wait` and `stop`.
    pub fn report(&self, number: u64) -> Result<Value> {
        let process = self.get(number).context("another process has its name by now")?;
        let mut report = json!({"name": process.name, "pid": process.pid});
        process.state.describe(&mut report);
        report["stderr_tail"] = json!(process.stderr.tail());
        report["placement"] = json!(process.placement);
        Ok(report)
    }

    /// Where the process with this number ran, if it is watched.
    pub fn placement(&mut self, number: u64) -> Option<&mut Placement> {
        let mut processes = self.processes.iter_mut();
        processes
            .find(|process| process.number == number)?
            .placement
            .as_mut()
    }

    /// True until the process and all that it forked have exited.
    pub fn is_running(&self, number: u64) -> bool {
        self.get(number)
            .is_some_and(|process| process.state == ProcessState::Running)
    }

    /// Time until the lease expires; that of a supervisor that is ending no longer does.
    pub fn lease_left(&self) -> Duration {
        if self.open_requests > 0 || self.ending.is_some() {
            return self.lease;
        }
        self.lease.saturating_sub(self.last_request.elapsed())
    }
}

/// That there is no `what`, with the names that there are, or how to get one.
fn unknown<'a>(what: &str, names: impl Iterator<Item = &'a str>, fix: &str) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => format!("no {what}: this supervisor has none; {fix}"),
        _ => format!("no {what}; this supervisor has: {}", names.join(", ")),
    }
}

impl Process {
    /// Sends it a signal, unless it has exited. The caller has the lock, under which it is reaped: no other
    /// process has its pid.
    pub fn signal(&self, signal: Signal) {
        if self.exit.is_none()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            kill_process(pid, signal).ok();
        }
    }

    /// When its memory is read; `None`: never.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.placement.as_ref()?.schedule.as_ref()
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
                report["signal"] = json!(signal_name(signal));
            }
        }
    }
}

/// The name of a signal number, without `SIG`, as kill(1) has it; the number if it has none.
pub fn signal_name(number: i32) -> String {
    match low_level::signal_name(number) {
        Some(name) => name.trim_start_matches("SIG").to_owned(),
        None => number.to_string(),
    }
}
