//! Reads eBPF array maps that are mapped into this process (`BPF_F_MMAPABLE`), without a system
//! call.

use std::io;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::slice;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use loadprint_recording::histogram::BUCKETS;
use memmap2::MmapOptions;
use memmap2::MmapRaw;

use super::skeletons::sched::types::histogram;
use crate::NotRunning;
use crate::source::fix_of;

/// The size of a word, to which the kernel rounds up every element (`kernel/bpf/arraymap.c`).
const WORD: usize = size_of::<u64>();

/// An array map with elements of the generated type `T`.
#[derive(Debug)]
pub struct MappedArray<T> {
    memory: MmapRaw,
    elements: usize,
    layout: PhantomData<fn() -> T>,
}

impl<T> MappedArray<T> {
    const WORDS: usize = size_of::<T>().div_ceil(WORD);

    /// Maps `map`.
    ///
    /// # Errors
    /// When the kernel refuses to map it, or its elements do not have the size of `T`.
    pub fn new(map: &impl MapCore) -> Result<Self, NotRunning> {
        if map.value_size() as usize != size_of::<T>() {
            return Err(unmapped(&io::Error::other("its elements have another size")));
        }
        let elements = map.max_entries() as usize;
        let length = elements * Self::WORDS * WORD;
        let memory = MmapOptions::new().len(length).map_raw(map.as_fd().as_raw_fd());
        Ok(Self {
            memory: memory.map_err(|error| unmapped(&error))?,
            elements,
            layout: PhantomData,
        })
    }

    /// The words of element `index`; empty if the map has no such element.
    #[must_use]
    pub fn words(&self, index: usize) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, has this length and lives as long as `self`;
        // programs in the kernel change it at any time, and atomics allow that.
        let all = unsafe {
            slice::from_raw_parts(
                self.memory.as_ptr().cast::<AtomicU64>(),
                self.elements * Self::WORDS,
            )
        };
        let start = index * Self::WORDS;
        all.get(start..start + Self::WORDS).unwrap_or_default()
    }

    /// The bytes of element `index`; empty if the map has no such element.
    #[must_use]
    pub fn bytes(&self, index: usize) -> &[AtomicU8] {
        let words = self.words(index);
        // SAFETY: the same memory with the same lifetime; bytes need no alignment.
        unsafe { slice::from_raw_parts(words.as_ptr().cast::<AtomicU8>(), size_of_val(words)) }
    }

    /// The counter of element `index` at byte `offset` of `T`; `None` if the map has no such
    /// element.
    #[must_use]
    pub fn counter(&self, index: usize, offset: usize) -> Option<u64> {
        let word = self.words(index).get(offset / WORD)?;
        Some(word.load(Ordering::Relaxed))
    }

    /// The sum of the counters of several elements at byte `offset` of `T`.
    #[must_use]
    pub fn sum(&self, elements: impl Iterator<Item = usize>, offset: usize) -> u64 {
        elements
            .filter_map(|index| self.counter(index, offset))
            .fold(0, u64::wrapping_add)
    }

    /// Adds the buckets of the histograms at byte `offset` of several elements; returns the sum of
    /// their values.
    pub fn add_histograms(
        &self,
        elements: impl Iterator<Item = usize> + Clone,
        offset: usize,
        buckets: &mut [u64; BUCKETS],
    ) -> u64 {
        for index in elements.clone() {
            let first = (offset + offset_of!(histogram, buckets)) / WORD;
            let counts = self.words(index).get(first..).unwrap_or_default();
            for (bucket, count) in buckets.iter_mut().zip(counts) {
                *bucket = bucket.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        self.sum(elements, offset + offset_of!(histogram, sum))
    }
}

/// Reports a map that cannot be mapped.
pub(crate) fn unmapped(error: &io::Error) -> NotRunning {
    let fix = fix_of(error, "it needs Linux 5.5 or newer");
    NotRunning::Unavailable(format!("ebpf: cannot map a BPF map into memory: {error}; {fix}"))
}

/// Limits the memory of histograms: a map of block devices takes a third of a megabyte for each set
/// and twenty disks.
const MAX_SETS: usize = 16;

/// The number of sets of histograms for programs that share a set between CPUs: a power of two.
pub(crate) fn shared_sets(cpus: usize) -> usize {
    cpus.next_power_of_two().min(MAX_SETS)
}

/// A map of histograms: `slots` elements for each CPU, or for each set that CPUs share.
#[derive(Debug)]
pub struct Histograms {
    elements: MappedArray<histogram>,
    slots: usize,
    cpus: usize,
    buckets: Box<[u64; BUCKETS]>,
}

impl Histograms {
    /// Maps a loaded map that has `slots` elements for each of `cpus` CPUs.
    ///
    /// # Errors
    /// When it cannot be mapped, or has another size.
    pub fn new(map: &impl MapCore, slots: usize, cpus: usize) -> Result<Self, NotRunning> {
        let elements = MappedArray::new(map)?;
        if elements.elements < slots * cpus {
            return Err(unmapped(&io::Error::other("it has too few histograms")));
        }
        Ok(Self {
            elements,
            slots,
            cpus,
            buckets: Box::new([0; BUCKETS]),
        })
    }

    /// The sum of the values of `slot` over all CPUs. It is much cheaper than the buckets and shows
    /// whether there are values.
    #[must_use]
    pub fn sum(&self, slot: usize) -> u64 {
        let elements = (0..self.cpus).map(|cpu| cpu * self.slots + slot);
        self.elements.sum(elements, offset_of!(histogram, sum))
    }

    /// Sum and buckets of `slot` over all CPUs.
    pub fn merged(&mut self, slot: usize) -> (u64, &[u64]) {
        self.merged_all(slot..slot + 1)
    }

    /// Sum and buckets of several slots over all CPUs.
    pub fn merged_all(&mut self, slots: Range<usize>) -> (u64, &[u64]) {
        self.buckets.fill(0);
        let of_cpu = self.slots;
        let elements = (0..self.cpus).flat_map(|cpu| slots.clone().map(move |slot| cpu * of_cpu + slot));
        let sum = self.elements.add_histograms(elements, 0, &mut self.buckets);
        (sum, &*self.buckets)
    }
}
