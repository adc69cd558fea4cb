//! The schedule: absolute times on CLOCK_MONOTONIC. Ticks that are missed are counted and never caught up.

use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
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

/// When a tick is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its number.
    pub tick: u32,
    /// CLOCK_MONOTONIC.
    pub intended_ns: i64,
    /// Ticks missed before it.
    pub missed: u32,
}

/// Due times `start + n × interval`.
#[derive(Debug)]
pub struct Schedule {
    start_ns: i64,
    interval_ns: i64,
    next: u32,
}

impl Schedule {
    /// The first tick is due at `start_ns`.
    pub fn new(start_ns: i64, interval_ns: i64) -> Self {
        Self {
            start_ns,
            interval_ns,
            next: 0,
        }
    }

    /// The next tick that can still be taken at `now_ns`; those a whole interval late are missed.
    pub fn next(&mut self, now_ns: i64) -> Due {
        let due_ns = self.due(self.next);
        let late = (now_ns - due_ns).max(0) / self.interval_ns;
        let missed = u32::try_from(late).unwrap_or(u32::MAX - self.next);
        let tick = self.next.saturating_add(missed);
        self.next = tick.saturating_add(1);
        Due {
            tick,
            intended_ns: self.due(tick),
            missed,
        }
    }

    /// The tick that is taken when the recording stops at `now_ns`, off the schedule, instead of `due`.
    pub fn last(due: Due, now_ns: i64) -> Due {
        Due {
            intended_ns: now_ns,
            ..due
        }
    }

    fn due(&self, tick: u32) -> i64 {
        self.start_ns
            .saturating_add(i64::from(tick).saturating_mul(self.interval_ns))
    }
}

/// SIGTERM and SIGINT, which stop, and SIGUSR1, which asks for a tick of all probes, as something that can be waited for.
#[derive(Debug)]
pub struct Stop {
    signals: UnixStream,
    wishes: UnixStream,
}

impl Stop {
    /// Takes over SIGTERM, SIGINT and SIGUSR1.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender.try_clone()?)?;
        pipe::register(SIGINT, sender)?;
        let (wishes, sender) = UnixStream::pair()?;
        wishes.set_nonblocking(true)?;
        pipe::register(SIGUSR1, sender)?;
        Ok(Self { signals, wishes })
    }

    /// Waits until CLOCK_MONOTONIC is `until_ns`; true if a signal came first.
    ///
    /// # Errors
    /// When waiting itself fails.
    pub fn wait_until(&self, until_ns: i64) -> io::Result<bool> {
        Ok(self.wait(Some(until_ns), None)? == Woken::Stopped)
    }

    /// Waits until CLOCK_MONOTONIC is `until_ns`, for ever where that is `None`, a signal comes, or `bell` can be read.
    ///
    /// # Errors
    /// When waiting itself fails.
    pub fn wait(&self, until_ns: Option<i64>, bell: Option<BorrowedFd<'_>>) -> io::Result<Woken> {
        loop {
            let left = until_ns.map(|until| (until - monotonic_ns()).max(0));
            let timeout = left.map(|left| Timespec {
                tv_sec: left / 1_000_000_000,
                tv_nsec: left % 1_000_000_000,
            });
            let (signals, wishes) = (self.signals.as_fd(), self.wishes.as_fd());
            // Without a bell the signals are waited for twice, which does no harm.
            let mut waits = [signals, wishes, bell.unwrap_or(signals)]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut waits, timeout.as_ref()) {
                Ok(0) if until_ns.is_some_and(|until| left == Some(0) || monotonic_ns() >= until) => {
                    return Ok(Woken::Due);
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) if !waits[0].revents().is_empty() => return Ok(Woken::Stopped),
                Ok(_) if !waits[1].revents().is_empty() => {
                    // Several wishes before a tick are one.
                    let _ = (&self.wishes).read(&mut [0; 64])?;
                    return Ok(Woken::Wished);
                }
                Ok(_) => return Ok(Woken::Asked),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time has come.
    Due,
    /// A signal to stop.
    Stopped,
    /// SIGUSR1: the next tick is to read all probes.
    Wished,
    /// Somebody rang the bell.
    Asked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_counted_and_not_caught_up() {
        let mut schedule = Schedule::new(1000, 10);
        assert_eq!(
            schedule.next(900),
            Due {
                tick: 0,
                intended_ns: 1000,
                missed: 0
            }
        );
        assert_eq!(
            schedule.next(1009),
            Due {
                tick: 1,
                intended_ns: 1010,
                missed: 0
            }
        );
        // 1020 is nine late and can be taken still; at 1047 two have gone by and 1040 is the one to take.
        assert_eq!(
            schedule.next(1029),
            Due {
                tick: 2,
                intended_ns: 1020,
                missed: 0
            }
        );
        assert_eq!(
            schedule.next(1057),
            Due {
                tick: 5,
                intended_ns: 1050,
                missed: 2
            }
        );
        assert_eq!(
            schedule.next(1057),
            Due {
                tick: 6,
                intended_ns: 1060,
                missed: 0
            }
        );
    }

    #[test]
    fn the_schedule_does_not_drift() {
        let mut schedule = Schedule::new(0, 1_000_000_000);
        for second in 0..1000 {
            let due = schedule.next(second * 1_000_000_000 + 700_000_000);
            assert_eq!(due.intended_ns, second * 1_000_000_000);
        }
    }
}
