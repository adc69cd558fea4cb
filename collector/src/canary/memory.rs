//! Copies through a buffer that no cache holds.

use std::convert::Infallible;
use std::hint::black_box;

use super::pin;
use super::slices::Part;
use super::slices::time;
use super::topology;

const SLICES: usize = 24;
/// Bytes read, and as many written, in one slice.
const SLICE: usize = 32 << 20;
/// The buffer is twice the largest cache, within these.
const LEAST: u64 = 2 * SLICE as u64;
const MOST: u64 = 512 << 20;

/// Copies on one CPU of each memory node of the set, in memory of that node: a page lies where it is first written (numa(7)).
///
/// # Errors
/// When a CPU cannot be used.
pub fn copies(cpus: &[u32]) -> anyhow::Result<Part> {
    let cpus = topology::one_per_node(cpus);
    let cache_bytes = cpus.iter().filter_map(|&cpu| topology::largest_cache(cpu)).max();
    let wanted = cache_bytes.map_or(LEAST, |cache| (2 * cache).clamp(LEAST, MOST));
    // Two halves of whole slices.
    let half = (wanted as usize / 2).div_ceil(SLICE) * SLICE;
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
