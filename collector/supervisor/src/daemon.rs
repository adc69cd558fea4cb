//! The daemon's main thread: forks, mounts and reaps, watches lease and controller, samples placement, writes
//! status.json, and at the end removes everything in the reverse order of its making.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
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
use crate::guard::say_ready;
use crate::jobs;
use crate::launch::Options;
use crate::log;
use crate::netns::NetNs;
use crate::procfs;
use crate::procfs::ProcessId;
use crate::protocol::Reply;
use crate::state::ProcessState;
use crate::state::Reason;
use crate::state::Shared;
use crate::state_dir::Holdings;
use crate::state_dir::StateDir;
use crate::status;
use crate::stop;

const TICK: Duration = Duration::from_secs(1);
/// Placement samples take at most 1/500 of the time: with many threads to look at they come less often than ticks.
const PLACEMENT_SHARE: u32 = 500;
/// How long callers may take to read their last answer.
const FAREWELL: Duration = Duration::from_secs(2);

/// The main thread's own state.
#[derive(Debug)]
pub struct Daemon<'a> {
    pub shared: Arc<Shared>,
    pub dir: &'a StateDir,
    pub boot_id: String,
    pub token: String,
    pub namespaces_made: u32,
    controller: Option<ProcessId>,
    woken: UnixStream,
    terminated: Arc<AtomicBool>,
    next_tick: Instant,
    next_placement: Instant,
}

/// Serves until the end; returns when everything has been removed.
pub fn serve(options: &Options, dir: &StateDir, cleaned: &Value) -> Result<()> {
    let mut daemon = Daemon::new(options, dir)?;
    let listener = dir.listen().context("cannot make the control socket")?;
    daemon.write_holdings()?;
    daemon.write_status()?;
    let (shared, path) = (Arc::clone(&daemon.shared), Arc::new(dir.path().to_owned()));
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || connection::accept_all(&shared, &listener, &path))
        .context("cannot start a thread")?;
    log::line(&format!(
        "started, pid {}, lease {:?}",
        std::process::id(),
        options.lease
    ));
    say_ready(&Reply::Ok(json!({
        "pid": std::process::id(), "state_dir": dir.path(), "lease_s": options.lease.as_secs_f64(), "cleaned": cleaned,
    })))?;
    loop {
        daemon.turn();
        let ending = daemon.shared.lock().ending;
        if let Some(reason) = ending {
            daemon.end(reason);
            return Ok(());
        }
    }
}

impl<'a> Daemon<'a> {
    fn new(options: &Options, dir: &'a StateDir) -> Result<Self> {
        let (woken, wake) = UnixStream::pair().context("socketpair")?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS.iter().copied().chain([SIGHUP]) {
            flag::register(signal, Arc::clone(&terminated)).context("signal")?;
            pipe::register(signal, wake.try_clone()?).context("signal")?;
        }
        pipe::register(SIGCHLD, wake.try_clone()?).context("signal")?;
        let controller = match options.controller_pid {
            Some(pid) => Some(ProcessId::of(pid).with_context(|| format!("controller {pid} is gone"))?),
            None => None,
        };
        let boot_id = procfs::boot_id().context("/proc/sys/kernel/random/boot_id")?;
        let me = ProcessId::of(std::process::id()).context("/proc of the host is not mounted")?;
        Ok(Self {
            shared: Arc::new(Shared::new(options.lease, wake)),
            dir,
            token: format!("{boot_id}/{}/{}", me.pid, me.start_time),
            boot_id,
            namespaces_made: 0,
            controller,
            woken,
            terminated,
            next_tick: Instant::now(),
            next_placement: Instant::now(),
        })
    }

    /// Sleeps until something happens, then does what there is to do.
    fn turn(&mut self) {
        let until_tick = self.next_tick.saturating_duration_since(Instant::now());
        let lease_left = self.shared.lock().lease_left();
        self.sleep(until_tick.min(lease_left));
        self.reap();
        while let Some(job) = self.shared.next_job() {
            let reply = Reply::from(jobs::perform(self, job.request));
            // A caller that has gone needs no answer.
            drop(job.reply.send(reply));
        }
        if self.terminated.load(Ordering::Relaxed) {
            self.shared.begin_end(Reason::Signal);
        } else if self.shared.lock().lease_left().is_zero() {
            self.shared.begin_end(Reason::Lease);
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
        // EINTR is as good as a wake-up.
        poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&timeout)).ok();
        let mut bytes = [0; 256];
        while matches!(self.woken.read(&mut bytes), Ok(read) if read == bytes.len()) {}
    }

    fn tick(&mut self) {
        let begin = Instant::now();
        if self.controller.is_some_and(|controller| !controller.is_alive()) {
            self.shared.begin_end(Reason::Controller);
        }
        if begin >= self.next_placement {
            self.sample_placement();
            self.next_placement = begin + begin.elapsed() * PLACEMENT_SHARE;
        }
        if let Err(error) = self.write_status() {
            log::line(&format!("{error:#}"));
        }
        self.next_tick = begin + TICK;
    }

    fn sample_placement(&self) {
        for process in &mut self.shared.lock().processes {
            if let (ProcessState::Running, Some(cpus), Some(placement)) =
                (process.state, &process.cpus, &mut process.placement)
            {
                placement.sample(process.id, cpus);
            }
        }
    }

    /// Collects every child that has ended, adopted ones included.
    fn reap(&self) {
        let mut state = self.shared.lock();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let of_pid = |process: &&mut crate::state::Process| {
                process.id.pid == pid && process.state == ProcessState::Running
            };
            let Some(process) = state.processes.iter_mut().find(of_pid) else {
                continue;
            };
            process.state = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => ProcessState::Exited(code),
                (None, Some(signal)) => ProcessState::Signalled(signal),
                (None, None) => continue,
            };
            log::line(&format!(
                "{} (pid {pid}) ended: {:?}",
                process.name, process.state
            ));
        }
        drop(state);
        self.shared.announce();
    }

    /// Writes down what the next `start` must remove if this supervisor and its guard are killed.
    pub fn write_holdings(&self) -> Result<()> {
        let state = self.shared.lock();
        let running = state
            .processes
            .iter()
            .filter(|process| process.state == ProcessState::Running);
        let holdings = Holdings {
            boot_id: self.boot_id.clone(),
            token: self.token.clone(),
            pid: std::process::id(),
            processes: running.map(|process| process.id).collect(),
            mounts: state.mounts.clone(),
            interfaces: state
                .namespaces
                .iter()
                .map(|netns| netns.host_interface.clone())
                .collect(),
            owned: state.owned.clone(),
        };
        drop(state);
        self.dir.write_json("state.json", &holdings)
    }

    fn write_status(&self) -> Result<()> {
        let document = status::document(&mut self.shared.lock(), self.dir.path());
        self.dir.write_json("status.json", &document)
    }

    fn end(&mut self, reason: Reason) {
        log::line(&format!("ending: {reason:?}"));
        let shared = Arc::clone(&self.shared);
        let stopper = thread::Builder::new().name("stop".into()).spawn(move || {
            stop::stop_all(&shared);
            shared.wake_main();
        });
        match stopper {
            Ok(stopper) => {
                while !stopper.is_finished() {
                    self.turn();
                }
            }
            Err(error) => log::line(&format!(
                "no thread to stop processes in order: {error}; killing them"
            )),
        }
        let mut left = self.remove_all();
        if let Err(error) = self.dir.remove("control.sock") {
            left.push(format!("control.sock: {error}"));
        }
        for line in &left {
            log::line(&format!("left behind: {line}"));
        }
        let mut state = self.shared.lock();
        state.left = left;
        state.ended = true;
        drop(state);
        self.write_end();
        self.shared.announce();
        self.say_farewell();
        log::line("ended");
    }

    fn remove_all(&self) -> Vec<String> {
        let me = std::process::id();
        let mut left = cleanup::kill_all(|| procfs::descendants(me), || self.reap());
        let mut state = self.shared.lock();
        let namespaces: Vec<NetNs> = state.namespaces.drain(..).collect();
        let mounts = std::mem::take(&mut state.mounts);
        let owned = std::mem::take(&mut state.owned);
        drop(state);
        left.extend(cleanup::remove_namespaces(namespaces));
        left.extend(cleanup::unmount_all(&mounts));
        left.extend(cleanup::remove_owned(&owned));
        left
    }

    /// The last status; state.json stays only where something was left. The directory itself may have been owned.
    fn write_end(&self) {
        if !self.dir.is_there() {
            self.dir.remove_empty_parent();
            return;
        }
        let nothing_left = self.shared.lock().left.is_empty();
        let removed = if nothing_left {
            self.dir.remove("state.json")
        } else {
            Ok(())
        };
        if let Err(error) = self.write_status().and(removed.context("state.json")) {
            log::line(&format!("{error:#}"));
        }
    }

    fn say_farewell(&self) {
        let deadline = Instant::now() + FAREWELL;
        let mut state = self.shared.lock();
        while state.open_requests > 0 && Instant::now() < deadline {
            state = self.shared.wait_change(state, Duration::from_millis(50));
        }
    }
}
