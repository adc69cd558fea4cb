//! Waits for the next tick or a signal.

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
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::pipe;

/// Pipes that become readable on SIGTERM or SIGINT (stop) and on SIGUSR1 (a tick of all probes).
#[derive(Debug)]
pub struct Signals {
    stop: UnixStream,
    sample_all: UnixStream,
}

impl Signals {
    /// Installs handlers for SIGTERM, SIGINT and SIGUSR1.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        let (stop, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender.try_clone()?)?;
        pipe::register(SIGINT, sender)?;
        let (sample_all, sender) = UnixStream::pair()?;
        sample_all.set_nonblocking(true)?;
        pipe::register(SIGUSR1, sender)?;
        Ok(Self { stop, sample_all })
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
            let mut descriptors = [self.stop.as_fd(), self.sample_all.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) if left == 0 || monotonic_ns() >= until_ns => return Ok(Wakeup::TickDue),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) if !descriptors[0].revents().is_empty() => return Ok(Wakeup::StopRequested),
                Ok(_) => {
                    // Several requests before one tick count as one.
                    let _ = (&self.sample_all).read(&mut [0; 64])?;
                    return Ok(Wakeup::SampleAllRequested);
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
    /// SIGTERM or SIGINT.
    StopRequested,
    /// SIGUSR1: the next tick reads all probes.
    SampleAllRequested,
}
