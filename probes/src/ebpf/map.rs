//! Array maps of the kernel, mapped into this process (BPF_F_MMAPABLE): read as memory, without a system call.

use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use loadprint_recording::histogram::BUCKETS;
use memmap2::MmapOptions;
use memmap2::MmapRaw;

/// An array map as words of 64 bits, all elements one after the other.
#[derive(Debug)]
pub struct Words {
    memory: MmapRaw,
    per_element: usize,
    len: usize,
}

impl Words {
    /// Maps `map`, whose elements are `value_size` bytes rounded up to whole words (`kernel/bpf/arraymap.c`).
    ///
    /// # Errors
    /// When the kernel refuses to map it.
    pub fn new(map: &impl MapCore) -> io::Result<Self> {
        let per_element = (map.value_size() as usize).div_ceil(8);
        let len = per_element * map.max_entries() as usize;
        let memory = MmapOptions::new().len(len * 8).map_raw(map.as_fd().as_raw_fd())?;
        Ok(Self {
            memory,
            per_element,
            len,
        })
    }

    /// The words of element `index`; empty beyond the last one.
    #[must_use]
    pub fn element(&self, index: usize) -> &[AtomicU64] {
        let start = index * self.per_element;
        self.all()
            .get(start..start + self.per_element)
            .unwrap_or_default()
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `len` words long and lives as long as `self`; the kernel's programs write it
        // at any time, which is what atomics are for.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<AtomicU64>(), self.len) }
    }
}

/// A map of `struct histogram` (`loadprint.bpf.h`): `slots` elements for each CPU.
#[derive(Debug)]
pub struct Histograms {
    words: Words,
    slots: usize,
    cpus: usize,
    sum: u64,
    buckets: Box<[u64; BUCKETS]>,
}

impl Histograms {
    /// Words of one element: the sum, the buckets, and what fills the cache line.
    const WORDS: usize = 1 + BUCKETS + 7;

    /// Maps a loaded map that has `slots` elements for each of `cpus` CPUs.
    ///
    /// # Errors
    /// When it cannot be mapped, or has another form.
    pub fn new(map: &impl MapCore, slots: usize, cpus: usize) -> io::Result<Self> {
        let words = Words::new(map)?;
        if words.per_element != Self::WORDS || words.len < Self::WORDS * slots * cpus {
            return Err(io::Error::other("the map does not hold its histograms"));
        }
        Ok(Self {
            words,
            slots,
            cpus,
            sum: 0,
            buckets: Box::new([0; BUCKETS]),
        })
    }

    /// The sum of `slot`'s values alone, over all CPUs: far cheaper, and enough to see whether there were any.
    #[must_use]
    pub fn sum(&self, slot: usize) -> u64 {
        (0..self.cpus)
            .filter_map(|cpu| self.words.element(cpu * self.slots + slot).first())
            .fold(0, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)))
    }

    /// Sum and buckets of `slot`, over all CPUs.
    pub fn merged(&mut self, slot: usize) -> (u64, &[u64]) {
        self.merged_all(slot..slot + 1)
    }

    /// Sum and buckets of several slots together, over all CPUs.
    pub fn merged_all(&mut self, slots: Range<usize>) -> (u64, &[u64]) {
        self.sum = 0;
        self.buckets.fill(0);
        let places = (0..self.cpus).flat_map(|cpu| slots.clone().map(move |slot| (cpu, slot)));
        for (cpu, slot) in places {
            let element = self.words.element(cpu * self.slots + slot);
            let mut words = element.iter().map(|word| word.load(Ordering::Relaxed));
            self.sum = self.sum.wrapping_add(words.next().unwrap_or(0));
            for (bucket, word) in self.buckets.iter_mut().zip(words) {
                *bucket = bucket.wrapping_add(word);
            }
        }
        (self.sum, &*self.buckets)
    }
}
