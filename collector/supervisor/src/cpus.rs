//! Parses lists of CPUs, reads the online CPUs, and sets affinities, also beyond the 1024 CPUs of glibc's
//! cpu_set_t.

use std::fs;
use std::io;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use loadprint_cpulist::CpuSet;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Parses a list and checks that all its CPUs are online.
pub fn parse_online(text: &str) -> Result<CpuSet> {
    let parse = |text: &str| {
        let set = text.parse::<CpuSet>().ok();
        set.with_context(|| format!("CPU list `{text}` is not like 0-3,8"))
    };
    let online = fs::read_to_string(ONLINE).context(ONLINE)?;
    let (requested, online) = (parse(text)?, parse(online.trim())?);
    let missing = requested.without(&online);
    ensure!(
        missing.is_empty(),
        "CPU list {text}: this host has no CPU {missing} (online: {online})"
    );
    Ok(requested)
}

/// The online CPUs that a thread may run on; thread 0 is the caller.
pub fn of_thread(thread: u32) -> io::Result<CpuSet> {
    let mut set = CpuSet::EMPTY;
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
pub fn pin_self(set: &CpuSet) -> io::Result<()> {
    // SAFETY: the kernel reads size_of_val bytes of the words.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            size_of_val(&set.words),
            set.words.as_ptr(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if of_thread(0)? == *set {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EINVAL))
    }
}
