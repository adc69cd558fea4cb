//! The daemon's main thread: forks, mounts and reaps, checks lease and controller, samples
//! placement, writes status.json, and finally removes all resources in reverse order.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::JoinHandle;
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
use crate::jobs;
use crate::launch::Options;
use crate::log;
use crate::main_thread::MainThread;
use crate::memory;
use crate::memory::Schedule;
use crate::netns::NetNs;
use crate::procfs;
use crate::procfs::ProcessId;
use crate::protocol::Reply;
use crate::ready::report_ready;
use crate::state::Process;
use crate::state::ProcessState;
use crate::state::Reason;
use crate::state::Shared;
use crate::state_dir::StateDir;
use crate::status;
use crate::stop;

const TICK: Duration = Duration::from_secs(1);
/// After the first samples of each process, placement samples use at most 1/500 of the time: with many
/// threads they are less frequent than ticks.
const PLACEMENT_SHARE: u32 = 500;
/// How long callers may take to read their last reply.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The daemon.
#[derive(Debug)]
struct Daemon<'a> {
    main: MainThread<'a>,
    controller: Option<ProcessId>,
    wakeup: UnixStream,
    terminated: Arc<AtomicBool>,
    next_tick: Instant,
    next_placement: Instant,
    memory_reader: Option<JoinHandle<()>>,
}

/// Runs the daemon; returns when all resources are removed.
pub fn serve(options: &Options, dir: &StateDir, cleaned: &Value) -> Result<()> {
    let mut daemon = Daemon::new(options, dir)?;
    let listener = dir.listen().context("cannot make the control socket")?;
    daemon.main.write_resources()?;
    daemon.write_status()?;
    let (shared, path) = (Arc::clone(&daemon.main.shared), Arc::new(dir.path().to_owned()));
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || connection::accept_all(&shared, &listener, &path))
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
    fn new(options: &Options, dir: &'a StateDir) -> Result<Self> {
        let (wakeup, wake) = UnixStream::pair().context("socketpair")?;
        wakeup.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS.iter().copied().chain([SIGHUP]) {
            flag::register(signal, Arc::clone(&terminated)).context("signal")?;
            pipe::register(signal, wake.try_clone()?).context("signal")?;
        }
        pipe::register(SIGCHLD, wake.try_clone()?).context("signal")?;
        let controller = match options.controller_pid {
            Some(pid) => Some(ProcessId::of(pid).with_context(|| format!("controller {pid} has exited"))?),
            None => None,
        };
        let boot_id = procfs::boot_id().context("/proc/sys/kernel/random/boot_id")?;
        let this = ProcessId::of(std::process::id()).context("/proc of the host is not mounted")?;
        Ok(Self {
            main: MainThread {
                shared: Arc::new(Shared::new(options.lease, wake)),
                dir,
                token: format!("{boot_id}/{}/{}", this.pid, this.start_time),
                boot_id,
                namespaces_created: 0,
            },
            controller,
            wakeup,
            terminated,
            next_tick: Instant::now(),
            next_placement: Instant::now(),
            memory_reader: None,
        })
    }

    /// Waits for the next event and handles it.
    fn step(&mut self) {
        let until_tick = self.next_tick.saturating_duration_since(Instant::now());
        let lease_left = self.main.shared.lock().lease_left();
        self.sleep(until_tick.min(lease_left));
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
        // EINTR counts as a wake-up.
        poll(&mut [PollFd::new(&self.wakeup, PollFlags::IN)], Some(&timeout)).ok();
        let mut bytes = [0; 256];
        while matches!(self.wakeup.read(&mut bytes), Ok(read) if read == bytes.len()) {}
    }

    fn tick(&mut self) {
        let begin = Instant::now();
        if self.controller.is_some_and(|controller| !controller.is_alive()) {
            self.main.shared.begin_end(Reason::Controller);
        }
        let is_due = begin >= self.next_placement;
        self.sample_placement(is_due);
        if is_due {
            self.next_placement = begin + begin.elapsed() * PLACEMENT_SHARE;
        }
        self.read_memory();
        if let Err(error) = self.write_status() {
            log::line(&format!("{error:#}"));
        }
        self.next_tick = begin + TICK;
    }

    /// Samples the processes; unless a sample is due, only those that started a few ticks ago.
    fn sample_placement(&self, is_due: bool) {
        for process in &mut self.main.shared.lock().processes {
            if let (ProcessState::Running, Some(placement)) = (process.state, &mut process.placement)
                && (is_due || placement.is_new())
            {
                placement.sample(process.id);
            }
        }
    }

    /// Reads the memory of the processes for which it is due, in a thread: a reading of a large process takes
    /// seconds.
    fn read_memory(&mut self) {
        if self
            .memory_reader
            .as_ref()
            .is_some_and(|reader| !reader.is_finished())
        {
            return;
        }
        let is_due = |process: &&Process| {
            let schedule = process
                .placement
                .as_ref()
                .and_then(|placement| placement.schedule.as_ref());
            process.state == ProcessState::Running && schedule.is_some_and(Schedule::is_due)
        };
        let due: Vec<ProcessId> = self
            .main
            .shared
            .lock()
            .processes
            .iter()
            .filter(is_due)
            .map(|process| process.id)
            .collect();
        if due.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.main.shared);
        let reader = thread::Builder::new()
            .name("memory".into())
            .spawn(move || due.into_iter().for_each(|id| memory::read(&shared, id)));
        self.memory_reader = reader
            .inspect_err(|error| log::line(&format!("cannot start a thread to read memory: {error}")))
            .ok();
    }

    /// Reaps every child that has ended, including adopted ones.
    fn reap(&self) {
        let mut state = self.main.shared.lock();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let of_pid =
                |process: &&mut Process| process.id.pid == pid && process.state == ProcessState::Running;
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
        self.main.shared.announce();
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
        let me = std::process::id();
        let mut left = cleanup::kill_all(|| procfs::descendants(me), || self.reap());
        let mut state = self.main.shared.lock();
        let namespaces: Vec<NetNs> = state.namespaces.drain(..).collect();
        let mounts = std::mem::take(&mut state.mounts);
        let interrupts = std::mem::take(&mut state.interrupts);
        let owned = std::mem::take(&mut state.owned);
        drop(state);
        left.extend(cleanup::restore_interrupts(&interrupts));
        left.extend(cleanup::remove_namespaces(namespaces));
        left.extend(cleanup::unmount_all(&mounts));
        left.extend(cleanup::remove_owned(&owned));
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
