//! Times equal slices of work.

use loadprint_recording::clock::monotonic_ns;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use serde::Serialize;

/// One of the four parts of the canary.
#[derive(Debug, Serialize)]
pub struct Part {
    /// `cpu`, `memory`, `syscall` or `fsync`.
    pub name: &'static str,
    /// Amount of work of one slice.
    pub work: u64,
    /// Unit of `work`.
    pub unit: &'static str,
    /// Size of the buffer of the memory part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Size of the largest cache, if the kernel reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// Why the part was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One for each CPU; all worked at the same time.
    pub lanes: Vec<Lane>,
}

/// The slices of one CPU.
#[derive(Debug, Default, Serialize)]
pub struct Lane {
    /// The CPU.
    pub cpu: u32,
    /// Wall-clock time of all slices.
    pub seconds: f64,
    /// CPU time; less than `seconds` if other tasks ran on the CPU or the thread slept.
    pub on_cpu_seconds: f64,
    /// The shortest slice.
    pub min_ns: i64,
    /// The median slice.
    pub median_ns: i64,
    /// The CPU's frequency after the work, if the kernel reports it.
    pub mhz: Option<f64>,
    /// All slices.
    pub slices_ns: Vec<i64>,
}

impl Part {
    /// A completed part.
    pub fn done(name: &'static str, work: u64, unit: &'static str, lanes: Vec<Lane>) -> Self {
        Self {
            name,
            work,
            unit,
            buffer_bytes: None,
            cache_bytes: None,
            reason: None,
            lanes,
        }
    }

    /// A part that was not done.
    pub fn skipped(name: &'static str, reason: String) -> Self {
        let mut part = Self::done(name, 0, "1", vec![]);
        part.reason = Some(reason);
        part
    }

    /// Formats the part as one line.
    pub fn line(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("{:<8} skipped: {reason}", self.name);
        }
        let slices = self.lanes.first().map_or(0, |lane| lane.slices_ns.len());
        let mean = |value: fn(&Lane) -> f64| {
            self.lanes.iter().map(value).sum::<f64>() / self.lanes.len().max(1) as f64
        };
        let (min, median) = (
            mean(|lane| lane.min_ns as f64),
            mean(|lane| lane.median_ns as f64),
        );
        let on = match self.lanes.as_slice() {
            [lane] => format!("CPU {}", lane.cpu),
            lanes => format!("{} CPUs", lanes.len()),
        };
        format!(
            "{:<8} {slices:>3} × {:>9} {:<7} {:>9.3} s  min {:>9.1} µs  median {:>9.1} µs per slice  {on}",
            self.name,
            self.work,
            self.unit,
            mean(|lane| lane.seconds),
            min / 1e3,
            median / 1e3,
        )
    }
}

/// Runs and times `slice` `count` times, or until `proceed` returns false.
pub fn time<E>(
    cpu: u32,
    count: usize,
    mut proceed: impl FnMut() -> bool,
    mut slice: impl FnMut(usize) -> Result<(), E>,
) -> Result<Lane, E> {
    let mut slices_ns = Vec::with_capacity(count);
    let on_cpu = thread_seconds();
    for number in 0..count {
        if !proceed() {
            break;
        }
        let begun = monotonic_ns();
        slice(number)?;
        slices_ns.push(monotonic_ns() - begun);
    }
    let on_cpu_seconds = thread_seconds() - on_cpu;
    let mut sorted = slices_ns.clone();
    sorted.sort_unstable();
    Ok(Lane {
        cpu,
        seconds: slices_ns.iter().sum::<i64>() as f64 / 1e9,
        on_cpu_seconds,
        min_ns: sorted.first().copied().unwrap_or(0),
        median_ns: sorted.get(sorted.len() / 2).copied().unwrap_or(0),
        mhz: None,
        slices_ns,
    })
}

fn thread_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
