//! Exports metrics of the recorder itself, under the names of the Prometheus client libraries.

use std::fs;

use rustix::param::page_size;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use super::families::Families;
use super::families::Kind;
use super::families::Number;

/// Appends the recorder's version, CPU time and memory.
pub fn expose(families: &mut Families) {
    let version = [("version", env!("CARGO_PKG_VERSION").as_bytes())];
    families
        .family("loadprint_build_info", Kind::Info, "version of the recorder")
        .sample(version, Number::Uint(1));
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    families
        .family(
            "process_cpu_seconds_total",
            Kind::Counter,
            "CPU time of the recorder, user and system",
        )
        .sample([], Number::Double(seconds));
    // proc_pid_statm(5): the second number is the resident set.
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    if let Some(pages) = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
    {
        families
            .family(
                "process_resident_memory_bytes",
                Kind::Gauge,
                "resident memory of the recorder",
            )
            .sample([], Number::Uint(pages * page_size() as u64));
    }
}
