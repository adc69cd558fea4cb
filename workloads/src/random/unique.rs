//! Draws unique 32-bit numbers: the quadratic residues of a counter modulo the largest prime p <
//! 2³² with p mod 4 = 3, like sb_rand_unique of sysbench (src/sb_rand.c of 1.0.20, after
//! preshing.com/20121224).

use super::Rng;

const PRIME: u32 = 4_294_967_291;
/// Separates the start of the sequence from the random streams of threads.
const UNIQUE_STREAM: u64 = 1 << 34;

/// One thread's part of a sequence: with n threads, thread i draws the numbers i, i + n, i + 2 n,
/// …, so that they do not depend on scheduling, unlike those of sysbench's shared counter.
#[derive(Debug, Clone)]
pub struct Unique {
    counter: u32,
    stride: u32,
    offset: u32,
}

impl Unique {
    /// For thread `thread` of `threads`; all threads of a run use the same seed.
    pub fn new(seed: u64, thread: usize, threads: usize) -> Self {
        let bits = Rng::new(seed, UNIQUE_STREAM).bits();
        let start = permute(permute(bits as u32).wrapping_add(0x682f_0161));
        let offset = permute(permute((bits >> 32) as u32).wrapping_add(0x4679_0905));
        Self {
            counter: start.wrapping_add(thread as u32),
            stride: threads as u32,
            offset,
        }
    }

    /// The next number. The sequence of all threads repeats after 2³² numbers.
    pub fn draw(&mut self) -> u32 {
        let index = self.counter;
        self.counter = index.wrapping_add(self.stride);
        permute(permute(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

fn permute(x: u32) -> u32 {
    // The five numbers from the prime on stay unchanged.
    if x >= PRIME { x } else { residue(x, PRIME) }
}

/// x² modulo the prime for the lower half, its negative for the upper half: a bijection of 0..prime
/// for primes 4 m + 3.
fn residue(x: u32, prime: u32) -> u32 {
    let residue = (u64::from(x) * u64::from(x) % u64::from(prime)) as u32;
    if x <= prime / 2 { residue } else { prime - residue }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_residues_are_a_permutation() {
        for prime in [7, 251, 65_519] {
            let all: HashSet<u32> = (0..prime).map(|x| residue(x, prime)).collect();
            assert_eq!(all.len(), prime as usize);
            assert!(all.iter().all(|x| *x < prime));
        }
        assert_eq!(PRIME % 4, 3);
    }

    #[test]
    fn the_numbers_of_all_threads_are_unique() {
        let mut seen = HashSet::new();
        for thread in 0..3 {
            let mut unique = Unique::new(9, thread, 3);
            for _ in 0..300_000 {
                assert!(seen.insert(unique.draw()));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let first = |seed| Unique::new(seed, 1, 4).draw();
        assert_eq!(first(5), first(5));
        assert_ne!(first(5), first(6));
    }
}
