//! Runs work on selected CPUs at the same time.

use std::sync::Barrier;
use std::thread;

use anyhow::Context;
use loadprint_probes::options::CpuSet;
use rustix::thread::CpuSet as Mask;
use rustix::thread::sched_getaffinity;
use rustix::thread::sched_setaffinity;

use super::slices::Lane;
use super::topology;

/// The CPUs of `--cpus`, or all that this process may use.
///
/// # Errors
/// When this process may not use one of them.
pub fn usable(option: Option<&CpuSet>) -> anyhow::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None).context("cannot read the CPUs of this process")?;
    let may_use = |cpu: u32| (cpu as usize) < Mask::MAX_CPU && allowed.is_set(cpu as usize);
    let Some(requested) = option else {
        return Ok((0..Mask::MAX_CPU as u32).filter(|&cpu| may_use(cpu)).collect());
    };
    for &cpu in requested.cpus() {
        anyhow::ensure!(
            may_use(cpu),
            "--cpus: CPU {cpu} does not exist, or this process may not use it (see taskset -cp $$)"
        );
    }
    Ok(requested.cpus().to_vec())
}

/// Pins this thread to `cpu`.
///
/// # Errors
/// When the kernel refuses.
pub fn pin_thread(cpu: u32) -> anyhow::Result<()> {
    let mut mask = Mask::new();
    mask.set(cpu as usize);
    sched_setaffinity(None, &mask).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Runs `work` on each CPU; all start together when `prepare` has ended on all CPUs.
///
/// # Errors
/// When a CPU cannot be used, or the process cannot have another thread.
pub fn on_each<T>(
    cpus: &[u32],
    prepare: impl Fn(u32) -> T + Sync,
    work: impl Fn(u32, T) -> Lane + Sync,
) -> anyhow::Result<Vec<Lane>> {
    let barrier = Barrier::new(cpus.len());
    let (barrier, prepare, work) = (&barrier, &prepare, &work);
    let on_one = |cpu: u32| {
        let pinned = pin_thread(cpu);
        let prepared = prepare(cpu);
        barrier.wait();
        pinned?;
        let mut lane = work(cpu, prepared);
        lane.mhz = topology::mhz(cpu);
        Ok(lane)
    };
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
