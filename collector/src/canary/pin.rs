//! Work on chosen CPUs, all at the same time.

use std::sync::Barrier;
use std::thread;

use anyhow::Context;
use loadprint_probes::options::CpuSet;
use rustix::thread::CpuSet as Mask;
use rustix::thread::sched_getaffinity;
use rustix::thread::sched_setaffinity;

use super::slices::Lane;
use super::topology;

/// The CPUs that were asked for, or all that this process may use.
///
/// # Errors
/// When one of them may not be used.
pub fn usable(asked: Option<&CpuSet>) -> anyhow::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None).context("cannot read the CPUs of this process")?;
    let may_use = |cpu: u32| (cpu as usize) < Mask::MAX_CPU && allowed.is_set(cpu as usize);
    let Some(asked) = asked else {
        return Ok((0..Mask::MAX_CPU as u32).filter(|&cpu| may_use(cpu)).collect());
    };
    for &cpu in asked.cpus() {
        anyhow::ensure!(
            may_use(cpu),
            "--cpus: CPU {cpu} is not there, or this process may not use it (see taskset -cp $$)"
        );
    }
    Ok(asked.cpus().to_vec())
}

/// Moves this thread to `cpu`.
///
/// # Errors
/// When the kernel refuses.
pub fn here(cpu: u32) -> anyhow::Result<()> {
    let mut mask = Mask::new();
    mask.set(cpu as usize);
    sched_setaffinity(None, &mask).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Runs `work` on each CPU, begun together once `prepare` has ended on all of them.
///
/// # Errors
/// When a CPU cannot be used, or there can be no further thread.
pub fn on_each<T>(
    cpus: &[u32],
    prepare: impl Fn(u32) -> T + Sync,
    work: impl Fn(u32, T) -> Lane + Sync,
) -> anyhow::Result<Vec<Lane>> {
    let barrier = Barrier::new(cpus.len());
    let (barrier, prepare, work) = (&barrier, &prepare, &work);
    let on_one = |cpu: u32| {
        let pinned = here(cpu);
        let prepared = prepare(cpu);
        barrier.wait();
        pinned?;
        let mut lane = work(cpu, prepared);
        lane.mhz = topology::mhz(cpu);
        Ok(lane)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || on_one(cpu))).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(anyhow::anyhow!(
                        "a thread of the canary ended early; please report this"
                    ))
                })
            })
            .collect()
    })
}
