//! Times copies within a buffer that is larger than every cache.

use std::convert::Infallible;
use std::hint::black_box;

use super::pin;
use super::slices::Part;
use super::slices::time;
use super::topology;

const SLICES: usize = 24;
/// Bytes that one slice reads and writes.
const SLICE: usize = 32 << 20;
/// The buffer is twice the largest cache, within these limits.
const MIN_BUFFER: u64 = 2 * SLICE as u64;
const MAX_BUFFER: u64 = 512 << 20;

/// Times copies on one CPU of each NUMA node of the set, in memory of that node: the first write to
/// a page selects its node (numa(7)).
///
/// # Errors
/// When a CPU cannot be used.
pub fn copies(cpus: &[u32]) -> anyhow::Result<Part> {
    let cpus = topology::one_per_node(cpus);
    let cache_bytes = cpus.iter().filter_map(|&cpu| topology::largest_cache(cpu)).max();
    let buffer = cache_bytes.map_or(MIN_BUFFER, |cache| (2 * cache).clamp(MIN_BUFFER, MAX_BUFFER));
    // Each half is a multiple of a slice.
    let half = (buffer as usize / 2).div_ceil(SLICE) * SLICE;
    let lanes = pin::on_each(
        &cpus,
        |_| vec![1_u8; 2 * half],
        |cpu, mut buffer| {
            let (from, to) = buffer.split_at_mut(half);
            let slice = |number| {
                let at = number * SLICE % half;
                to[at..at + SLICE].copy_from_slice(&from[at..at + SLICE]);
                black_box(&mut to[at]);
                Ok::<_, Infallible>(())
            };
            match time(cpu, SLICES, || true, slice) {
                Ok(lane) => lane,
            }
        },
    )?;
    let mut part = Part::done("memory", SLICE as u64, "B", lanes);
    part.buffer_bytes = Some(2 * half as u64);
    part.cache_bytes = cache_bytes;
    Ok(part)
}
