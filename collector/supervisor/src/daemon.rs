//! The daemon's main thread: forks, mounts and reaps, checks lease and controller, writes status.json, and
//! finally removes all resources in reverse order.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use loadprint_recording::clock;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::process::WaitOptions;
use rustix::process::wait;
use serde_json::Value;
use serde_json::json;
use signal_hook::consts::SIGCHLD;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;
use signal_hook::low_level::pipe;

use crate::cleanup;
use crate::connection;
use crate::groups::Group;
use crate::groups::KILL_TIMEOUT;
use crate::groups::POLL_INTERVAL;
use crate::jobs;
use crate::jobs::MainThread;
use crate::launch;
use crate::launch::Options;
use crate::launch::report_ready;
use crate::log;
use crate::protocol::Reply;
use crate::state::Process;
use crate::state::ProcessState;
use crate::state::Reason;
use crate::state::Shared;
use crate::state_dir::OwnedResources;
use crate::state_dir::StateDir;
use crate::status;
use crate::stop;
use crate::watch;

const TICK: Duration = Duration::from_secs(1);
/// How long callers may take to read their last reply.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The daemon.
#[derive(Debug)]
struct Daemon<'a> {
    main: MainThread<'a>,
    /// Readable when it has exited (pidfd_open(2)).
    controller: Option<OwnedFd>,
    wakeup: UnixStream,
    terminated: Arc<AtomicBool>,
    next_tick: Instant,
}

/// Runs the daemon; returns when all resources are removed.
pub fn serve(options: &Options, dir: &StateDir, group: &Group, cleaned: &Value) -> Result<()> {
    let mut daemon = Daemon::new(options, dir, group)?;
    let listener = dir.listen().context("cannot make the control socket")?;
    daemon.main.write_resources()?;
    daemon.write_status()?;
    let (shared, path) = (Arc::clone(&daemon.main.shared), Arc::new(dir.path().to_owned()));
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || connection::accept_all(&shared, &listener, &path))
        .context("cannot start a thread")?;
    let shared = Arc::clone(&daemon.main.shared);
    thread::Builder::new()
        .name("watch".into())
        .spawn(move || watch::watch(&shared))
        .context("cannot start a thread")?;
    log::line(&format!(
        "started, pid {}, lease {:?}",
        std::process::id(),
        options.lease
    ));
    report_ready(&Reply::Ok(json!({
        "pid": std::process::id(), "state_dir": dir.path(), "lease_s": options.lease.as_secs_f64(), "cleaned": cleaned,
    })))?;
    loop {
        daemon.step();
        let ending = daemon.main.shared.lock().ending;
        if let Some(reason) = ending {
            daemon.end(reason);
            return Ok(());
        }
    }
}

impl<'a> Daemon<'a> {
    fn new(options: &Options, dir: &'a StateDir, group: &'a Group) -> Result<Self> {
        let (wakeup, wake) = UnixStream::pair().context("socketpair")?;
        wakeup.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS.iter().copied().chain([SIGHUP]) {
            flag::register(signal, Arc::clone(&terminated)).context("signal")?;
            pipe::register(signal, wake.try_clone()?).context("signal")?;
        }
        pipe::register(SIGCHLD, wake.try_clone()?).context("signal")?;
        let controller = options.controller_pid.map(launch::open_controller).transpose()?;
        let resources = OwnedResources {
            boot_id: clock::boot_id()?,
            group: group.path().to_owned(),
            pid: std::process::id(),
            ..OwnedResources::default()
        };
        Ok(Self {
            main: MainThread {
                shared: Arc::new(Shared::new(options.lease, wake, resources)),
                dir,
                group,
                started: 0,
                namespaces_created: 0,
            },
            controller,
            wakeup,
            terminated,
            next_tick: Instant::now(),
        })
    }

    /// Waits for the next event and handles it.
    fn step(&mut self) {
        let until_tick = self.next_tick.saturating_duration_since(Instant::now());
        let lease_left = self.main.shared.lock().lease_left();
        let until_reaped = if self.is_reaping() { POLL_INTERVAL } else { TICK };
        self.sleep(until_tick.min(lease_left).min(until_reaped));
        self.reap();
        while let Some(job) = self.main.shared.next_job() {
            let reply = Reply::from(jobs::perform(&mut self.main, job.request));
            // The caller may have disconnected.
            drop(job.reply.send(reply));
        }
        if self.terminated.load(Ordering::Relaxed) {
            self.main.shared.begin_end(Reason::Signal);
        } else if self.main.shared.lock().lease_left().is_zero() {
            self.main.shared.begin_end(Reason::Lease);
        }
        if Instant::now() >= self.next_tick {
            self.tick();
        }
    }

    fn sleep(&mut self, time: Duration) {
        let timeout = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut events = vec![PollFd::new(&self.wakeup, PollFlags::IN)];
        events.extend(
            self.controller
                .iter()
                .map(|controller| PollFd::new(controller, PollFlags::IN)),
        );
        // EINTR counts as a wake-up.
        poll(&mut events, Some(&timeout)).ok();
        if events
            .get(1)
            .is_some_and(|controller| !controller.revents().is_empty())
        {
            self.main.shared.begin_end(Reason::Controller);
            self.controller = None;
        }
        let mut bytes = [0; 256];
        while matches!(self.wakeup.read(&mut bytes), Ok(read) if read == bytes.len()) {}
    }

    fn tick(&mut self) {
        if let Err(error) = self.write_status() {
            log::line(&format!("{error:#}"));
        }
        self.next_tick = Instant::now() + TICK;
    }

    /// Reaps every child that has exited, including adopted ones. A process has ended when all processes of its
    /// group have.
    fn reap(&self) {
        let mut state = self.main.shared.lock();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let exit = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => ProcessState::Exited(code),
                (None, Some(signal)) => ProcessState::Signalled(signal),
                (None, None) => continue,
            };
            let of_pid = |process: &&mut Process| process.pid == pid && process.exit.is_none();
            if let Some(process) = state.processes.iter_mut().find(of_pid) {
                log::line(&format!("{} (pid {pid}) ended: {exit:?}", process.name));
                process.exit = Some((exit, Instant::now()));
            }
        }
        for process in &mut state.processes {
            if let (ProcessState::Running, Some((exit, at))) = (process.state, process.exit) {
                process.group.kill();
                if process.group.is_empty() || at.elapsed() > KILL_TIMEOUT {
                    // It stays if a process cannot be killed, until the end.
                    drop(process.group.remove());
                    process.state = exit;
                }
            }
        }
        drop(state);
        self.main.shared.announce();
    }

    /// True while processes of a group are left whose first process has exited.
    fn is_reaping(&self) -> bool {
        let state = self.main.shared.lock();
        let mut processes = state.processes.iter();
        processes.any(|process| process.state == ProcessState::Running && process.exit.is_some())
    }

    fn write_status(&self) -> Result<()> {
        let document = status::document(&mut self.main.shared.lock(), self.main.dir.path());
        self.main.dir.write_json("status.json", &document)
    }

    fn end(&mut self, reason: Reason) {
        log::line(&format!("ending: {reason:?}"));
        let shared = Arc::clone(&self.main.shared);
        let stopper = thread::Builder::new().name("stop".into()).spawn(move || {
            stop::stop_all(&shared);
            shared.wake_main();
        });
        match stopper {
            Ok(stopper) => {
                while !stopper.is_finished() {
                    self.step();
                }
            }
            Err(error) => log::line(&format!(
                "cannot start a thread to stop the processes in order: {error}; killing them"
            )),
        }
        let mut left = self.remove_all();
        if let Err(error) = self.main.dir.remove("control.sock") {
            left.push(format!("control.sock: {error}"));
        }
        for line in &left {
            log::line(&format!("not removed: {line}"));
        }
        let mut state = self.main.shared.lock();
        state.left = left;
        state.ended = true;
        drop(state);
        self.write_end();
        self.main.shared.announce();
        self.wait_for_last_replies();
        log::line("ended");
    }

    fn remove_all(&self) -> Vec<String> {
        let mut left: Vec<String> = self.main.group.end(|| self.reap()).into_iter().collect();
        let mut state = self.main.shared.lock();
        let resources = std::mem::take(&mut state.resources);
        let namespaces = std::mem::take(&mut state.namespaces);
        drop(state);
        left.extend(cleanup::remove_resources(&resources));
        drop(namespaces);
        left
    }

    /// Writes the last status. state.json stays only if a resource could not be removed. The state
    /// directory itself may have been owned and removed.
    fn write_end(&self) {
        if !self.main.dir.exists() {
            self.main.dir.remove_empty_parent();
            return;
        }
        let nothing_left = self.main.shared.lock().left.is_empty();
        let removed = if nothing_left {
            self.main.dir.remove("state.json")
        } else {
            Ok(())
        };
        if let Err(error) = self.write_status().and(removed.context("state.json")) {
            log::line(&format!("{error:#}"));
        }
    }

    fn wait_for_last_replies(&self) {
        let deadline = Instant::now() + LAST_REPLY_TIMEOUT;
        let mut state = self.main.shared.lock();
        while state.open_requests > 0 && Instant::now() < deadline {
            state = self.main.shared.wait_change(state, Duration::from_millis(50));
        }
    }
}
