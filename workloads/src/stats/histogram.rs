//! A latency histogram that several threads write while another one reads it: HdrHistogram's
//! buckets as atomics, in nanoseconds with three significant digits, up to about an hour. Larger
//! values count in the last bucket.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The largest value: 2^42 ns, 73 minutes.
const MAX_VALUE: u64 = (1 << 42) - 1;
/// log2 of the buckets per power of two: 2^10 for three digits.
const HALF_BITS: u32 = 10;
const BUCKETS: usize = index_of(MAX_VALUE) + 1;

const fn index_of(value: u64) -> usize {
    if value >> (HALF_BITS + 1) == 0 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - HALF_BITS;
    ((shift as usize) << HALF_BITS) + (value >> shift) as usize
}

/// The lowest value of a bucket.
const fn value_of(index: usize) -> u64 {
    if index >> (HALF_BITS + 1) == 0 {
        return index as u64;
    }
    let shift = (index >> HALF_BITS) - 1;
    ((index - (shift << HALF_BITS)) as u64) << shift
}

/// Counts per bucket, a quarter of a megabyte, which threads share to save memory.
#[derive(Debug)]
pub struct LiveHistogram {
    counts: Box<[AtomicU64]>,
}

impl Default for LiveHistogram {
    fn default() -> Self {
        Self {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl LiveHistogram {
    /// Counts a value.
    pub fn record(&self, nanoseconds: u64) {
        self.counts[index_of(nanoseconds.min(MAX_VALUE))].fetch_add(1, Relaxed);
    }

    /// Adds the counts to `sums`.
    pub fn add_to(&self, sums: &mut Buckets) {
        for (sum, count) in sums.0.iter_mut().zip(&self.counts) {
            *sum += count.load(Relaxed);
        }
    }
}

/// A copy of the counts per bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets(Box<[u64]>);

impl Default for Buckets {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into())
    }
}

impl Buckets {
    /// The increase since `earlier` per bucket, without empty buckets.
    pub fn since(&self, earlier: &Self) -> Sparse {
        let pairs = self.0.iter().zip(&earlier.0).enumerate();
        let increased = pairs.filter(|(_, (now, before))| now > before);
        Sparse(
            increased
                .map(|(index, (now, before))| (index as u32, now - before))
                .collect(),
        )
    }
}

/// The number of values from `from_ns` to less than `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub from_ns: u64,
    pub to_ns: u64,
    pub count: u64,
}

/// The buckets that are not empty, as (number, count).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sparse(Vec<(u32, u64)>);

impl Sparse {
    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Values that another program has counted, as (nanoseconds, count).
    pub fn of(values: impl Iterator<Item = (u64, u64)>) -> Self {
        let index = |value: u64| index_of(value.min(MAX_VALUE)) as u32;
        let counted = values.filter(|(_, count)| *count > 0);
        let mut sparse = Self::default();
        sparse.merge(&Self(
            counted.map(|(value, count)| (index(value), count)).collect(),
        ));
        sparse
    }

    /// The value that this share of the values does not exceed, the highest of its bucket; none without
    /// values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |bucket: &Bucket| {
            seen += bucket.count;
            seen >= wanted
        };
        self.iter().find(reaches).map(|bucket| bucket.to_ns - 1)
    }

    /// The buckets that are not empty, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> {
        self.0.iter().map(|(index, count)| Bucket {
            from_ns: value_of(*index as usize),
            to_ns: value_of(*index as usize + 1),
            count: *count,
        })
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
        self.0.sort_unstable_by_key(|(index, _)| *index);
        self.0.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn buckets_equal_those_of_hdrhistogram() {
        let hdr = Histogram::<u64>::new_with_bounds(1, MAX_VALUE, 3).unwrap();
        let mut value = 1u64;
        while value < MAX_VALUE {
            for near in [value - 1, value, value + 1, value + value / 3] {
                let near = near.clamp(1, MAX_VALUE);
                assert_eq!(value_of(index_of(near)), hdr.lowest_equivalent(near), "{near}");
            }
            value = value * 2 - value / 7;
            value += 1;
        }
    }

    #[test]
    fn quantiles_are_those_of_hdrhistogram() {
        let live = LiveHistogram::default();
        let mut hdr = Histogram::<u64>::new_with_bounds(1, MAX_VALUE, 3).unwrap();
        for value in (1..=10_000).map(|step| step * 1000) {
            live.record(value);
            hdr.record(value).unwrap();
        }
        let mut sums = Buckets::default();
        live.add_to(&mut sums);
        let sparse = sums.since(&Buckets::default());
        assert_eq!(sparse.count(), 10_000);
        for share in [0.0001, 0.5, 0.95, 0.999, 1.0] {
            assert_eq!(sparse.quantile(share), Some(hdr.value_at_quantile(share)));
        }
        assert_eq!(Sparse::default().quantile(0.5), None);
    }

    #[test]
    fn merge_adds_counts_of_equal_buckets() {
        let mut one = Sparse(vec![(1, 2), (5, 1)]);
        one.merge(&Sparse(vec![(0, 1), (5, 3)]));
        assert_eq!(one, Sparse(vec![(0, 1), (1, 2), (5, 4)]));
    }

    #[test]
    fn counted_values_are_in_their_buckets() {
        let bucket = |from_ns, to_ns, count| Bucket {
            from_ns,
            to_ns,
            count,
        };
        let counted = Sparse::of([(6000, 2), (5, 0), (1_000_001, 3), (7, 1), (6001, 4)].into_iter());
        let expected = [
            bucket(7, 8, 1),
            bucket(6000, 6004, 6),
            bucket(999_936, 1_000_448, 3),
        ];
        assert_eq!(counted.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_value_above_the_range_is_counted() {
        let live = LiveHistogram::default();
        live.record(u64::MAX);
        let mut sums = Buckets::default();
        live.add_to(&mut sums);
        assert_eq!(sums.since(&Buckets::default()).count(), 1);
    }
}
