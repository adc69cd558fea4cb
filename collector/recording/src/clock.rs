//! Reads the two clocks of a recording, and the boot ID within which times of CLOCK_MONOTONIC are
//! comparable.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;
use rustix::time::clock_gettime;

use crate::At;
use crate::Result;

/// CLOCK_MONOTONIC in nanoseconds, comparable within one boot only.
#[must_use]
pub fn monotonic_ns() -> i64 {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME in nanoseconds since 1970-01-01 UTC.
#[must_use]
pub fn realtime_ns() -> i64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The boot ID in `/proc/sys/kernel/random/boot_id` (random(4)).
///
/// # Errors
/// When the file cannot be read, for example in a container without `/proc/sys`.
pub fn boot_id() -> Result<String> {
    boot_id_under(Path::new("/proc"))
}

/// [`boot_id`] with another root of procfs.
///
/// # Errors
/// When the file cannot be read.
pub fn boot_id_under(proc: &Path) -> Result<String> {
    let path = proc.join("sys/kernel/random/boot_id");
    Ok(fs::read_to_string(&path).at(&path)?.trim().to_owned())
}
