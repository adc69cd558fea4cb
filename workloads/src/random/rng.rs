//! The random number generator xoroshiro128+ (Blackman and Vigna, prng.di.unimi.it), seeded per
//! thread by splitmix64.

/// A generator owned by one thread.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 2],
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Rng {
    /// The stream of `thread` under the master seed.
    pub fn new(seed: u64, thread: u64) -> Self {
        let mut mixed = seed;
        let mut start = splitmix64(&mut mixed) ^ thread.wrapping_mul(0xd134_2543_de82_ef95);
        Self {
            state: [splitmix64(&mut start), splitmix64(&mut start)],
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [first, mut second] = self.state;
        let sum = first.wrapping_add(second);
        second ^= first;
        self.state = [
            first.rotate_left(24) ^ second ^ (second << 16),
            second.rotate_left(37),
        ];
        sum
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform integer from `lowest` to `highest`, both included.
    pub fn uniform(&mut self, lowest: i64, highest: i64) -> i64 {
        lowest + (self.unit() * (highest - lowest + 1) as f64) as i64
    }

    /// Fills `text` with groups of eleven random digits joined by `-`, as in sysbench's text
    /// columns: 119 bytes are ten groups, 59 are five.
    pub fn digits(&mut self, text: &mut [u8]) {
        let mut bits = 0u64;
        for (position, byte) in text.iter_mut().enumerate() {
            if position % 12 == 11 {
                *byte = b'-';
                continue;
            }
            // A fresh word per group of eleven: each digit is the integer part of fraction × 10.
            if position % 12 == 0 {
                bits = self.bits();
            }
            let product = u128::from(bits) * 10;
            *byte = b'0' + (product >> 64) as u8;
            bits = product as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_returns_its_published_values() {
        // The first outputs for seed 1234567 of the reference implementation.
        let mut state = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| splitmix64(&mut state)).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn each_thread_and_seed_has_a_separate_stream() {
        let draw = |seed, thread| {
            let mut rng = Rng::new(seed, thread);
            (0..8).map(|_| rng.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }

    #[test]
    fn text_columns_have_the_form_of_sysbench() {
        let mut text = [0; 59];
        Rng::new(1, 1).digits(&mut text);
        let text = String::from_utf8(text.to_vec()).unwrap();
        let groups: Vec<&str> = text.split('-').collect();
        assert_eq!(groups.len(), 5);
        assert!(
            groups
                .iter()
                .all(|group| group.len() == 11 && group.bytes().all(|b| b.is_ascii_digit()))
        );
    }
}
