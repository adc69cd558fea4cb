//! Sets of CPUs: parses the list format of cpuset(7) (`0-3,8`), reads the online CPUs, and sets
//! affinities, also beyond the 1024 CPUs of glibc's cpu_set_t.

use std::fmt;
use std::fs;
use std::io;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;

/// CPUs that a mask can hold.
const CAPACITY: usize = loadprint_cpulist::MAX_CPUS as usize;
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A set of CPUs, as a mask in the kernel's layout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; Self::WORDS],
}

impl CpuSet {
    /// Words of the mask.
    pub const WORDS: usize = CAPACITY / 64;
    const EMPTY: Self = Self {
        words: [0; Self::WORDS],
    };

    /// Parses a list and checks that all its CPUs are online.
    pub fn parse_online(text: &str) -> Result<Self> {
        let online = fs::read_to_string(ONLINE).context(ONLINE)?;
        let (requested, online) = (Self::parse(text)?, Self::parse(online.trim())?);
        let missing = requested.without(&online);
        ensure!(
            missing.is_empty(),
            "CPU list {text}: this host has no CPU {missing} (online: {online})"
        );
        Ok(requested)
    }

    /// Parses a list such as `0-3,8`; an empty one is an error.
    pub fn parse(text: &str) -> Result<Self> {
        let cpus =
            loadprint_cpulist::parse(text).with_context(|| format!("CPU list `{text}` is not like 0-3,8"))?;
        let mut set = Self::EMPTY;
        for cpu in cpus {
            set.words[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Ok(set)
    }

    /// The mask.
    pub fn words(&self) -> &[u64; Self::WORDS] {
        &self.words
    }

    /// The CPUs of this set that are not in the other.
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = *self;
        for (word, other) in rest.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
        rest
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        let cpu = cpu as usize;
        self.words
            .get(cpu / 64)
            .is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    /// The online CPUs that a thread may run on; thread 0 is the caller.
    pub fn of_thread(thread: u32) -> io::Result<Self> {
        let mut set = Self::EMPTY;
        // SAFETY: the kernel writes at most size_of_val bytes into the words, which any bit pattern
        // may fill.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                thread,
                size_of_val(&set.words),
                set.words.as_mut_ptr(),
            )
        };
        if written < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(set)
        }
    }

    /// Pins the calling thread. The kernel silently omits CPUs that a cpuset cgroup forbids, so the
    /// affinity is read back; EINVAL if it differs. Async-signal-safe.
    pub fn pin_self(&self) -> io::Result<()> {
        // SAFETY: the kernel reads size_of_val bytes of the words.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_setaffinity,
                0,
                size_of_val(&self.words),
                self.words.as_ptr(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if Self::of_thread(0)? == *self {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        }
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpu = 0;
        let mut separator = "";
        while cpu < CAPACITY as u32 {
            if !self.contains(cpu) {
                cpu += 1;
                continue;
            }
            let first = cpu;
            while self.contains(cpu + 1) {
                cpu += 1;
            }
            if first == cpu {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{cpu}")?;
            }
            separator = ",";
            cpu += 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_printed_in_the_kernels_format() {
        for (given, printed) in [
            ("0", "0"),
            ("0-3,8", "0-3,8"),
            ("8,0,1", "0-1,8"),
            ("63-65", "63-65"),
        ] {
            assert_eq!(CpuSet::parse(given).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn within_means_every_cpu() {
        let wide = CpuSet::parse("0-3").unwrap();
        assert!(CpuSet::parse("1,2").unwrap().is_within(&wide));
        assert!(!CpuSet::parse("1,4").unwrap().is_within(&wide));
    }

    #[test]
    fn the_error_names_the_missing_cpu() {
        let error = CpuSet::parse_online("0,8000").unwrap_err().to_string();
        assert!(error.contains("no CPU 8000"), "{error}");
    }
}
