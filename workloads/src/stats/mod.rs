//! What is counted: one block per thread and transaction type, written by its thread alone and added up by one reader.

pub mod histogram;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use histogram::Buckets;
use histogram::LiveHistogram;
use histogram::Sparse;

/// The counters of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Operations, as the workload declares them.
    Events,
    /// Statements that gave a result set.
    Reads,
    /// Statements that affected rows.
    Writes,
    /// Statements that did neither.
    Others,
    /// Explicit COMMITs of events that succeeded.
    Commits,
    /// Transactions that the workload rolled back by its own rules.
    Rollbacks,
    /// Rows written by events that succeeded.
    Rows,
    /// Ignored errors.
    Errors,
    /// Connections opened again after an error.
    Reconnects,
    /// Connections opened again because `--reconnect` asks for it.
    Reopens,
    /// Statements sent to be prepared; this counter and the next two are brought up to date when a phase is over.
    Prepares,
    /// Prepared statements run.
    Executes,
    /// Prepared statements closed.
    Closes,
    /// Latencies added up, nanoseconds.
    LatencyNs,
}

const COUNTERS: usize = Counter::LatencyNs as usize + 1;

/// Counters of one thread and transaction type; aligned so that threads share no cache line (two, as they are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Block {
    counts: [AtomicU64; COUNTERS],
    latency: LiveHistogram,
}

/// All that one thread counts.
#[derive(Debug)]
pub struct ThreadStats {
    blocks: Box<[Block]>,
}

impl ThreadStats {
    /// For a workload with so many transaction types.
    pub fn new(types: usize) -> Self {
        Self {
            blocks: (0..types).map(|_| Block::default()).collect(),
        }
    }

    /// Adds to a counter; only the owner may call it, so that no locked instruction is needed.
    pub fn add(&self, kind: usize, counter: Counter, amount: u64) {
        let count = &self.blocks[kind].counts[counter as usize];
        count.store(count.load(Relaxed) + amount, Relaxed);
    }

    /// Counts a latency; as [`ThreadStats::add`].
    pub fn latency(&self, kind: usize, nanoseconds: u64) {
        self.blocks[kind].latency.record(nanoseconds);
        self.add(kind, Counter::LatencyNs, nanoseconds);
    }

    /// The events of all types so far.
    pub fn events(&self) -> u64 {
        let events = |block: &Block| block.counts[Counter::Events as usize].load(Relaxed);
        self.blocks.iter().map(events).sum()
    }
}

/// The sums over all threads at one moment, per transaction type.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    types: Vec<([u64; COUNTERS], Buckets)>,
}

impl Snapshot {
    /// Adds up what the threads have counted so far.
    pub fn take(threads: &[ThreadStats]) -> Self {
        let types = threads.first().map_or(0, |thread| thread.blocks.len());
        let mut sums = vec![([0; COUNTERS], Buckets::default()); types];
        for thread in threads {
            for (block, (counts, buckets)) in thread.blocks.iter().zip(&mut sums) {
                for (sum, count) in counts.iter_mut().zip(&block.counts) {
                    *sum += count.load(Relaxed);
                }
                block.latency.add_to(buckets);
            }
        }
        Self { types: sums }
    }

    /// What was counted since an earlier snapshot of the same threads.
    pub fn since(&self, earlier: &Self) -> Vec<Totals> {
        let pairs = self.types.iter().zip(&earlier.types);
        pairs
            .map(|((counts, buckets), (counts_before, buckets_before))| Totals {
                counts: std::array::from_fn(|index| counts[index] - counts_before[index]),
                latency: buckets.since(buckets_before),
            })
            .collect()
    }
}

/// What was counted for one transaction type between two snapshots.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    counts: [u64; COUNTERS],
    /// Latencies in nanoseconds.
    pub latency: Sparse,
}

impl Totals {
    /// One counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Client statements that succeeded.
    pub fn queries(&self) -> u64 {
        self.get(Counter::Reads) + self.get(Counter::Writes) + self.get(Counter::Others)
    }

    /// Connections opened again, for whatever cause.
    pub fn reconnects(&self) -> u64 {
        self.get(Counter::Reconnects) + self.get(Counter::Reopens)
    }

    /// Adds another.
    pub fn merge(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.latency.merge(&other.latency);
    }

    /// The sum over types.
    pub fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|totals| sum.merge(totals));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_snapshots_is_what_happened_between_them() {
        let threads = [ThreadStats::new(2), ThreadStats::new(2)];
        threads[0].add(0, Counter::Reads, 3);
        let before = Snapshot::take(&threads);
        threads[0].add(0, Counter::Reads, 2);
        threads[1].add(0, Counter::Writes, 1);
        threads[1].add(1, Counter::Events, 1);
        threads[1].latency(1, 5000);
        let totals = Snapshot::take(&threads).since(&before);
        assert_eq!((totals[0].get(Counter::Reads), totals[0].queries()), (2, 3));
        assert_eq!(
            (totals[1].get(Counter::Events), totals[1].latency.count()),
            (1, 1)
        );
        assert_eq!(Totals::sum(&totals).get(Counter::LatencyNs), 5000);
    }
}
