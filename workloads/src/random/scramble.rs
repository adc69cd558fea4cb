//! A fixed permutation of a range of keys that separates adjacent keys.

/// i ↦ i × step mod n, a bijection: step is near n ÷ golden ratio and coprime to n. Multiples of
/// the golden ratio leave no large gap and no close pair (Knuth, TAOCP 3, 6.4), so that m adjacent
/// hot keys become about n ÷ m apart. It depends on n only: every thread, run and seed has the same
/// hot keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scramble {
    keys: u64,
    step: u64,
}

impl Scramble {
    /// For keys 0..`keys`, fewer than 2³².
    pub fn new(keys: u64) -> Self {
        let golden = (keys as f64 * 0.618_033_988_749_894_9) as u64;
        // keys − 1 is coprime to keys, so that the search ends.
        let step = (golden.max(1)..keys).find(|step| gcd(*step, keys) == 1);
        Self {
            keys: keys.max(1),
            step: step.unwrap_or(1),
        }
    }

    /// The permuted key.
    pub fn apply(self, key: u64) -> u64 {
        key * self.step % self.keys
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_a_permutation() {
        for keys in (1..=300).chain([4096, 9973, 10_000, 99_991, 100_000]) {
            let scramble = Scramble::new(keys);
            let mut seen = vec![false; usize::try_from(keys).unwrap()];
            for key in 0..keys {
                let place = usize::try_from(scramble.apply(key)).unwrap();
                assert!(!seen[place], "{keys}: {place} twice");
                seen[place] = true;
            }
        }
    }

    /// The 77 hot ids of `special` among 10,000: adjacent, they are on two pages of 75 rows;
    /// scrambled, almost each is on a different page.
    #[test]
    fn hot_keys_are_on_many_pages() {
        let scramble = Scramble::new(10_000);
        let mut pages: Vec<u64> = (4974..4974 + 77).map(|key| scramble.apply(key) / 75).collect();
        pages.sort_unstable();
        pages.dedup();
        assert!(pages.len() > 65, "{}", pages.len());
    }

    #[test]
    fn the_largest_table_does_not_overflow() {
        let keys = u64::from(u32::MAX);
        assert!(Scramble::new(keys).apply(keys - 1) < keys);
    }
}
