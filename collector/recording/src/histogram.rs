//! Defines the buckets of histograms: the index by which eBPF programs count, the bounds in tables,
//! and the arithmetic.
//!
//! Values 0 to 15 have one bucket each; above them, each power of two has eight buckets of equal
//! width. The middle of a bucket differs from any value in it by at most a sixteenth (6.25 %). The
//! last bucket has no upper bound.

/// Number of buckets: they cover values up to 2^37 (137 s in nanoseconds); the last one counts all
/// larger values.
pub const BUCKETS: usize = 280;

/// Each power of two has `2^GROUPING` buckets.
pub const GROUPING: u32 = 3;

/// The lower bound of every bucket, followed by infinity (`None`).
pub static BOUNDS: [Option<f64>; BUCKETS + 1] = bounds();

const fn bounds() -> [Option<f64>; BUCKETS + 1] {
    let mut bounds = [None; BUCKETS + 1];
    let mut index = 0;
    while index < BUCKETS {
        bounds[index] = Some(lower(index) as f64);
        index += 1;
    }
    bounds
}

/// The smallest value of bucket `index`.
#[must_use]
pub const fn lower(index: usize) -> u64 {
    let linear = 2 << GROUPING;
    if index < linear {
        return index as u64;
    }
    let shift = (index >> GROUPING) as u32 - 1;
    let within = (index & ((1 << GROUPING) - 1)) as u64;
    (within + (1 << GROUPING)) << shift
}

/// The index of the bucket of `value`.
#[must_use]
pub const fn bucket(value: u64) -> usize {
    if value < 2 << GROUPING {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - GROUPING;
    let index = ((shift as usize) << GROUPING) + (value >> shift) as usize;
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// Adds the counts of `other` to `sum`; exact even if a counter wrapped.
pub fn merge(sum: &mut [u64], other: &[u64]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = sum.wrapping_add(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket_and_near_its_middle() {
        let mut values: Vec<u64> = (0..5000).collect();
        values.extend((12..64).flat_map(|power| {
            let base = 1u64 << power;
            [base - 1, base, base + 1, base + base / 3, base + base / 8 * 7]
        }));
        for value in values {
            let index = bucket(value);
            assert!(lower(index) <= value, "{value}");
            if index + 1 < BUCKETS {
                let (low, high) = (lower(index), lower(index + 1));
                assert!(value < high, "{value}");
                let middle = (low + high - 1) as f64 / 2.0;
                assert!((middle - value as f64).abs() <= 0.0625 * value as f64, "{value}");
            } else {
                assert!(value >= 1 << 36, "{value}");
            }
        }
        assert_eq!(bucket((1 << 37) - 1), BUCKETS - 1);
        assert_eq!(BOUNDS[BUCKETS], None);
        assert_eq!(BOUNDS[16], Some(16.0));
    }

    #[test]
    fn counts_are_added_also_if_a_counter_wraps() {
        let mut both = vec![u64::MAX, 2, 0];
        merge(&mut both, &[3, 4, 5]);
        assert_eq!(both, [2, 6, 5]);
    }
}
