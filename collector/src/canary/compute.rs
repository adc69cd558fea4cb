//! Times integer arithmetic and system calls.

use std::convert::Infallible;
use std::hint::black_box;

use rustix::process::getppid;

use super::pin;
use super::slices::Lane;
use super::slices::Part;
use super::slices::time;

const SLICES: usize = 25;
/// About 10 ms a slice on a CPU of 2020: longer than a scheduler time slice, so that a busy process
/// on the same CPU lengthens every slice.
const ROUNDS: u64 = 4_000_000;
const CALLS: u64 = 60_000;

/// Times multiplications and shifts on every CPU of the set.
///
/// # Errors
/// When a CPU cannot be used.
pub fn integers(cpus: &[u32]) -> anyhow::Result<Part> {
    let mixed = || {
        black_box(mix(black_box(ROUNDS)));
    };
    let lanes = pin::on_each(cpus, |_| mixed(), |cpu, ()| repeated(cpu, mixed))?;
    Ok(Part::done("cpu", ROUNDS, "rounds", lanes))
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
    let lanes = pin::on_each(&cpus[..1], |_| call(), |cpu, ()| repeated(cpu, call))?;
    Ok(Part::done("syscall", CALLS, "calls", lanes))
}

fn repeated(cpu: u32, mut work: impl FnMut()) -> Lane {
    let slice = |_| {
        work();
        Ok::<_, Infallible>(())
    };
    match time(cpu, SLICES, || true, slice) {
        Ok(lane) => lane,
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
