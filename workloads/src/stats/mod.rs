//! Counts events, statements and latencies: one block of counters per thread and transaction type,
//! written by that thread only and summed by one reader. Threads share a few latency histograms,
//! because one per thread would need more memory than a connection.

pub mod histogram;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use histogram::Buckets;
use histogram::LiveHistogram;
use histogram::Sparse;

/// The counters of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Operations, as declared by the workload.
    Events,
    /// Statements with a result set.
    Reads,
    /// Statements that affected rows.
    Writes,
    /// All other statements.
    Others,
    /// Explicit COMMITs of events that succeeded.
    Commits,
    /// Transactions rolled back by the rules of the workload.
    Rollbacks,
    /// Rows written by events that succeeded.
    Rows,
    /// Ignored errors.
    Errors,
    /// Connections opened again after an error.
    Reconnects,
    /// Connections opened again by `--reconnect`.
    Reopens,
    /// Prepares sent. This counter and the next two are updated at the end of a phase.
    Prepares,
    /// Prepared statements run.
    Executes,
    /// Prepared statements closed.
    Closes,
    /// Sum of the waits from the intended to the actual start, which the latencies include, in
    /// nanoseconds.
    WaitNs,
    /// Sum of the latencies in nanoseconds.
    LatencyNs,
}

const COUNTERS: usize = Counter::LatencyNs as usize + 1;

/// Maximum number of histograms per transaction type. More of them reduce contention between CPUs.
const MAX_SHARDS: usize = 8;

/// Counters of one thread and transaction type. Aligned to two cache lines, which CPUs fetch in
/// pairs, against false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Block {
    counts: [AtomicU64; COUNTERS],
}

/// One histogram per transaction type.
type Latencies = Arc<[LiveHistogram]>;

/// The counters and histograms of one thread.
#[derive(Debug)]
pub struct ThreadStats {
    blocks: Box<[Block]>,
    latencies: Latencies,
}

/// The counters of all threads.
#[derive(Debug)]
pub struct Stats {
    threads: Vec<ThreadStats>,
    shards: Vec<Latencies>,
}

impl Stats {
    /// For these numbers of threads and transaction types.
    pub fn new(threads: usize, types: usize) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let shards = cpus.min(threads).clamp(1, MAX_SHARDS);
        let histograms = |_| (0..types).map(|_| LiveHistogram::default()).collect();
        let shards: Vec<Latencies> = (0..shards).map(histograms).collect();
        let thread_stats = |latencies: &Latencies| ThreadStats {
            blocks: (0..types).map(|_| Block::default()).collect(),
            latencies: Arc::clone(latencies),
        };
        Self {
            threads: shards.iter().cycle().take(threads).map(thread_stats).collect(),
            shards,
        }
    }

    /// The counters of each thread.
    pub fn threads(&self) -> &[ThreadStats] {
        &self.threads
    }
}

impl ThreadStats {
    /// Adds to a counter without a locked instruction: only the owning thread may call it.
    pub fn add(&self, kind: usize, counter: Counter, amount: u64) {
        let count = &self.blocks[kind].counts[counter as usize];
        count.store(count.load(Relaxed) + amount, Relaxed);
    }

    /// Counts a latency, like [`ThreadStats::add`].
    pub fn latency(&self, kind: usize, nanoseconds: u64) {
        self.latencies[kind].record(nanoseconds);
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
    /// Sums the counters of all threads.
    pub fn take(stats: &Stats) -> Self {
        let types = stats.shards.first().map_or(0, |shard| shard.len());
        let mut sums = vec![([0; COUNTERS], Buckets::default()); types];
        for thread in &stats.threads {
            for (block, (counts, _)) in thread.blocks.iter().zip(&mut sums) {
                for (sum, count) in counts.iter_mut().zip(&block.counts) {
                    *sum += count.load(Relaxed);
                }
            }
        }
        for shard in &stats.shards {
            for (histogram, (_, buckets)) in shard.iter().zip(&mut sums) {
                histogram.add_to(buckets);
            }
        }
        Self { types: sums }
    }

    /// The increase since an earlier snapshot of the same threads.
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

/// The increase of one transaction type between two snapshots.
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

    /// Connections opened again for any reason.
    pub fn reconnects(&self) -> u64 {
        self.get(Counter::Reconnects) + self.get(Counter::Reopens)
    }

    /// Adds the counts of another.
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
    fn a_difference_of_snapshots_has_only_the_counts_between_them() {
        let stats = Stats::new(2, 2);
        let threads = stats.threads();
        threads[0].add(0, Counter::Reads, 3);
        let before = Snapshot::take(&stats);
        threads[0].add(0, Counter::Reads, 2);
        threads[1].add(0, Counter::Writes, 1);
        threads[1].add(1, Counter::Events, 1);
        threads[1].latency(1, 5000);
        let totals = Snapshot::take(&stats).since(&before);
        assert_eq!((totals[0].get(Counter::Reads), totals[0].queries()), (2, 3));
        assert_eq!(
            (totals[1].get(Counter::Events), totals[1].latency.count()),
            (1, 1)
        );
        assert_eq!(Totals::sum(&totals).get(Counter::LatencyNs), 5000);
    }
}
