//! The work of the canary, in four parts of equal slices: integer arithmetic, copies within memory,
//! system calls, and synced appends to the data device.

use std::fs;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use loadprint_recording::clock::monotonic_ns;
use rustix::process::getppid;
use rustix::thread::CpuSet;
use rustix::thread::sched_setaffinity;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use super::Lane;
use super::Part;
use super::topology;
use crate::wakeup::Signals;

/// Slices of the parts on the CPU.
const SLICES: usize = 25;
/// About 10 ms a slice on a CPU of 2020: longer than a scheduler time slice, so that a busy process
/// on the same CPU lengthens every slice.
const ROUNDS: u64 = 4_000_000;
const CALLS: u64 = 60_000;

const COPIES: usize = 24;
/// Bytes that one copy reads and writes.
const COPY: usize = 32 << 20;
/// The buffer is twice the largest cache, within these limits.
const MIN_BUFFER: u64 = 2 * COPY as u64;
const MAX_BUFFER: u64 = 512 << 20;

/// A file with a name, because some file systems do not sync unnamed files; of this canary, because
/// two can run on one device.
const FILE: &str = ".loadprint-canary-";
const BLOCK: usize = 4096;
const APPENDS: usize = 100;
/// A slow disk completes fewer appends within this time.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Times multiplications and shifts on every CPU of the set.
///
/// # Errors
/// When a CPU cannot be used.
pub fn integers(cpus: &[u32]) -> anyhow::Result<Part> {
    let mixed = || {
        black_box(mix(black_box(ROUNDS)));
    };
    Ok(Part::done("cpu", ROUNDS, "rounds", repeated(cpus, mixed)?))
}

/// Times a cheap system call on the first CPU of the set.
///
/// # Errors
/// When the CPU cannot be used.
pub fn syscalls(cpus: &[u32]) -> anyhow::Result<Part> {
    let call = || {
        for _ in 0..CALLS {
            black_box(getppid());
        }
    };
    Ok(Part::done("syscall", CALLS, "calls", repeated(&cpus[..1], call)?))
}

/// Times copies on one CPU of each NUMA node of the set, in memory of that node: the first write to
/// a page selects its node (numa(7)).
///
/// # Errors
/// When a CPU cannot be used.
pub fn copies(cpus: &[u32]) -> anyhow::Result<Part> {
    let cpus = topology::one_per_node(cpus);
    let cache_bytes = cpus.iter().filter_map(|&cpu| topology::largest_cache(cpu)).max();
    let buffer = cache_bytes.map_or(MIN_BUFFER, |cache| (2 * cache).clamp(MIN_BUFFER, MAX_BUFFER));
    // Each half is a multiple of a copy.
    let half = (buffer as usize / 2).div_ceil(COPY) * COPY;
    let lanes = on_each(&cpus, COPIES, || {
        let mut buffer = vec![1_u8; 2 * half];
        move |number: usize| {
            let (from, to) = buffer.split_at_mut(half);
            let at = number * COPY % half;
            to[at..at + COPY].copy_from_slice(&from[at..at + COPY]);
            black_box(&mut to[at]);
        }
    })?;
    let mut part = Part::done("memory", COPY as u64, "B", lanes);
    part.buffer_bytes = Some(2 * half as u64);
    part.cache_bytes = cache_bytes;
    Ok(part)
}

/// Times appends of 4 KiB, each followed by fdatasync(2), to a temporary file on the data device. An
/// I/O error is not an error here: the part records it as the reason.
///
/// # Errors
/// When the CPU cannot be used.
pub fn appends(dir: &Path, cpu: u32, signals: &Signals) -> anyhow::Result<Part> {
    pin_thread(cpu)?;
    remove_leftovers(dir);
    let path = dir.join(format!("{FILE}{}", std::process::id()));
    let lane = File::create_new(&path).and_then(|mut file| {
        let begun = Instant::now();
        let proceed = || begun.elapsed() < TIME_LIMIT && !matches!(signals.stop_requested(), Ok(true));
        let lane = time(cpu, APPENDS, proceed, |_| {
            file.write_all(&[0x5a; BLOCK])?;
            file.sync_data()
        });
        if let Err(error) = fs::remove_file(&path) {
            eprintln!("loadprint-collect: warning: {}: {error}", path.display());
        }
        lane
    });
    Ok(match lane {
        Ok(lane) => Part::done("fsync", 1, "append", vec![lane]),
        Err(error) => {
            let reason = format!("{}: {error}", dir.display());
            eprintln!("loadprint-collect: warning: canary: part fsync was skipped: {reason}");
            Part::skipped("fsync", reason)
        }
    })
}

/// Removes the files of canaries that were killed: no process has the pid in their names.
fn remove_leftovers(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(FILE)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // If this fails, creating the next file fails as well and is reported.
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Four independent chains of xorshift and multiplication: enough parallelism that a busy SMT
/// sibling slows them down.
fn mix(rounds: u64) -> u64 {
    let mut chains = [1_u64, 2, 3, 4].map(|seed| black_box(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain ^= *chain >> 12;
            *chain ^= *chain << 25;
            *chain = chain.wrapping_mul(0x2545_f491_4f6c_dd1d);
        }
    }
    chains.iter().fold(0, |sum, chain| sum ^ chain)
}

/// Times `work` on each CPU, after doing it once.
fn repeated(cpus: &[u32], work: impl Fn() + Sync) -> anyhow::Result<Vec<Lane>> {
    on_each(cpus, SLICES, || {
        work();
        |_| work()
    })
}

/// Times `count` slices on each CPU; all CPUs start together when `prepare` has made the work of
/// each.
fn on_each<Work: FnMut(usize)>(
    cpus: &[u32],
    count: usize,
    prepare: impl Fn() -> Work + Sync,
) -> anyhow::Result<Vec<Lane>> {
    let barrier = Barrier::new(cpus.len());
    let on_one = |cpu: u32| {
        let pinned = pin_thread(cpu);
        let mut work = prepare();
        barrier.wait();
        pinned?;
        let mut lane = time(
            cpu,
            count,
            || true,
            |number| {
                work(number);
                Ok(())
            },
        )?;
        lane.mhz = topology::mhz(cpu);
        Ok(lane)
    };
    let on_one = &on_one;
    thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || on_one(cpu))).collect();
        let panicked = |_| {
            Err(anyhow::anyhow!(
                "a thread of the canary panicked; please report this"
            ))
        };
        let lanes = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked));
        lanes.collect()
    })
}

fn pin_thread(cpu: u32) -> anyhow::Result<()> {
    let mut mask = CpuSet::new();
    mask.set(cpu as usize);
    sched_setaffinity(None, &mask).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Runs and times `slice` `count` times, or until `proceed` returns false.
fn time(
    cpu: u32,
    count: usize,
    mut proceed: impl FnMut() -> bool,
    mut slice: impl FnMut(usize) -> io::Result<()>,
) -> io::Result<Lane> {
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
