//! Starts the perf event that runs the program: hardware cycles where the processor has them, else
//! the CPU clock.

use std::io;
use std::mem::offset_of;
use std::os::fd::IntoRawFd;
use std::time::Duration;
use std::time::Instant;

use libbpf_rs::Link;
use perf_event::Builder;
use perf_event::Counter;
use perf_event::events::Hardware;
use perf_event::events::Software;

use super::FREQUENCY_HZ;
use crate::Host;
use crate::NotRunning;
use crate::ebpf;
use crate::ebpf::map::MappedArray;
use crate::ebpf::skeletons::profile::ProfileSkel;
use crate::ebpf::skeletons::profile::types::cpu_calls;
use crate::perf::online_cpus;
use crate::source::RAISE_OPEN_FILES;

/// The sampled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Clock cycles of a CPU that is not idle. The kernel changes the period all the time, to take
    /// the samples per second: a sample stands for the cycles since the previous one.
    Cycles,
    /// Time, by a timer of the kernel.
    CpuClock,
}

/// The first period of hardware events is one event, so that a working CPU is interrupted at once.
const FIRST_INTERRUPT: Duration = Duration::from_millis(50);

impl Event {
    /// Its name in `stacks.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }

    /// Starts the best event that this host has, with the program, on every online CPU.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] where the kernel refuses the CPU clock.
    pub fn start(host: &Host, programs: &ProfileSkel<'_>) -> Result<(Self, Vec<Link>), NotRunning> {
        // All CPUs have the same event, also if only some of them refuse cycles. Some virtual
        // processors accept the event and never interrupt.
        if let Ok(links) = Self::Cycles.attach(host, programs)
            && has_interrupted(programs)
        {
            return Ok((Self::Cycles, links));
        }
        Ok((Self::CpuClock, Self::CpuClock.attach(host, programs)?))
    }

    fn attach(self, host: &Host, programs: &ProfileSkel<'_>) -> Result<Vec<Link>, NotRunning> {
        let online = online_cpus(host)?;
        online
            .cpus()
            .map(|cpu| {
                let event = self
                    .open(cpu)
                    .map_err(|error| NotRunning::Unavailable(refused(&error)))?;
                // The link owns the descriptor.
                let link = programs.progs.take_sample.attach_perf_event(event.into_raw_fd());
                link.map_err(|error| ebpf::refused("profile", &error))
            })
            .collect()
    }

    fn open(self, cpu: u32) -> io::Result<Counter> {
        let mut builder = match self {
            Self::Cycles => Builder::new(Hardware::CPU_CYCLES),
            Self::CpuClock => Builder::new(Software::CPU_CLOCK),
        };
        builder
            .any_pid()
            .one_cpu(cpu as usize)
            .sample_frequency(FREQUENCY_HZ)
            .exclude_kernel(false)
            // Takes no turns with the counters of the probe `perf`.
            .pinned(self == Self::Cycles)
            // An idle CPU has no cycles; ARM refuses the option.
            .exclude_idle(self == Self::CpuClock)
            .build()
    }
}

/// Whether the event runs the program while this thread works.
fn has_interrupted(programs: &ProfileSkel<'_>) -> bool {
    let Ok(calls) = MappedArray::<cpu_calls>::new(&programs.maps.calls_take_sample) else {
        return false;
    };
    let started = Instant::now();
    while started.elapsed() < FIRST_INTERRUPT {
        let by_cpu = (0..).map_while(|cpu| calls.counter(cpu, offset_of!(cpu_calls, count)));
        if by_cpu.max() > Some(0) {
            return true;
        }
    }
    false
}

fn refused(error: &io::Error) -> String {
    let of_files = format!("it needs a descriptor for each CPU: {RAISE_OPEN_FILES}");
    let fix = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run as root, or with CAP_PERFMON; a container may need another seccomp profile"
        }
        Some(libc::EMFILE) => &of_files,
        Some(libc::ENOSYS) => "the kernel needs CONFIG_PERF_EVENTS",
        _ => "please report this with the version of the kernel",
    };
    format!("profile: perf_event_open: {error}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_fix() {
        for (errno, expected) in [
            (libc::EACCES, "CAP_PERFMON"),
            (libc::EMFILE, "ulimit -n"),
            (libc::ENOSYS, "CONFIG_PERF_EVENTS"),
            (libc::EINVAL, "please report this"),
        ] {
            let reason = refused(&io::Error::from_raw_os_error(errno));
            assert!(
                reason.starts_with("profile: ") && reason.contains(expected),
                "{reason}"
            );
            assert!(reason.contains("; ") && reason.lines().count() == 1, "{reason}");
        }
    }
}
