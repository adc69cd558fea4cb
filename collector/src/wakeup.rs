//! Waits for the next tick or a signal.

use std::fs;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use loadprint_recording::clock::monotonic_ns;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::time::Timespec;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;
use signal_hook::low_level::pipe;

/// Pipes that become readable on SIGTERM, SIGINT or the end of the terminal (stop), when the gate of the eBPF
/// programs is to be opened (SIGRTMIN) or closed (SIGUSR2), and when a recording is to take a tick of all probes:
/// the first on SIGUSR1, the Kth after it on SIGRTMIN+K.
#[derive(Debug)]
pub struct Signals {
    stop: UnixStream,
    requests: Vec<(UnixStream, Wakeup)>,
}

impl Signals {
    /// Installs the handlers for this number of recordings.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install(recordings: usize) -> io::Result<Self> {
        let (stop, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender.try_clone()?)?;
        // nohup(1) lets it be ignored.
        if !is_ignored(SIGHUP) {
            pipe::register(SIGHUP, sender.try_clone()?)?;
        }
        pipe::register(SIGINT, sender)?;
        // What is asked first holds for the ticks that follow.
        let gate = [
            (libc::SIGRTMIN(), Wakeup::GateRequested { open: true }),
            (SIGUSR2, Wakeup::GateRequested { open: false }),
        ];
        let further = (libc::SIGRTMIN() + 1..=libc::SIGRTMAX()).take(recordings.saturating_sub(1));
        let ticks = [SIGUSR1].into_iter().chain(further);
        let ticks = ticks
            .enumerate()
            .map(|(place, signal)| (signal, Wakeup::SampleAllRequested(place)));
        let requests = gate.into_iter().chain(ticks).map(|(signal, wakeup)| {
            let (request, sender) = UnixStream::pair()?;
            request.set_nonblocking(true)?;
            pipe::register(signal, sender)?;
            Ok((request, wakeup))
        });
        Ok(Self {
            stop,
            requests: requests.collect::<io::Result<_>>()?,
        })
    }

    /// True if a stop signal has arrived.
    ///
    /// # Errors
    /// When poll(2) fails.
    pub fn stop_requested(&self) -> io::Result<bool> {
        Ok(self.wait(0)? == Wakeup::StopRequested)
    }

    /// Waits until CLOCK_MONOTONIC reaches `until_ns` or a signal arrives.
    ///
    /// # Errors
    /// When poll(2) fails.
    pub fn wait(&self, until_ns: i64) -> io::Result<Wakeup> {
        loop {
            let left = (until_ns - monotonic_ns()).max(0);
            let timeout = Timespec {
                tv_sec: left / 1_000_000_000,
                tv_nsec: left % 1_000_000_000,
            };
            let pipes = [&self.stop]
                .into_iter()
                .chain(self.requests.iter().map(|(pipe, _)| pipe));
            let mut descriptors: Vec<_> = pipes
                .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
                .collect();
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) if left == 0 || monotonic_ns() >= until_ns => return Ok(Wakeup::TickDue),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let ready = descriptors.iter().position(|pipe| !pipe.revents().is_empty());
                    let Some(place) = ready.and_then(|ready| ready.checked_sub(1)) else {
                        return Ok(Wakeup::StopRequested);
                    };
                    let (mut pipe, wakeup) = (&self.requests[place].0, self.requests[place].1);
                    // Several requests before one tick count as one.
                    let _ = pipe.read(&mut [0; 64])?;
                    return Ok(wakeup);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The time has come.
    TickDue,
    /// A signal to stop.
    StopRequested,
    /// The next tick of this recording, from 0, reads all probes.
    SampleAllRequested(usize),
    /// The gate of the eBPF programs.
    GateRequested { open: bool },
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
