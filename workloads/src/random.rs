//! Random numbers: xoroshiro128+ (Blackman and Vigna, prng.di.unimi.it), seeded per thread by splitmix64, and sysbench's
//! distributions of keys. One seed gives one stream per thread, whatever the scheduler does.

use anyhow::Result;

use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;

/// Options of every workload that draws keys.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "rand-type",
        Kind::Choice(&["special", "uniform", "gaussian", "pareto", "zipfian"]),
        Some("special"),
        "distribution of keys; special is the default of sysbench 1.0, uniform that of later ones",
    ),
    OptionSpec::new(
        "rand-spec-iter",
        Kind::Int(1, 1000),
        Some("12"),
        "uniforms that gaussian and special add up",
    ),
    OptionSpec::new(
        "rand-spec-pct",
        Kind::Int(1, 100),
        Some("1"),
        "percent of keys that are special",
    ),
    OptionSpec::new(
        "rand-spec-res",
        Kind::Int(0, 99),
        Some("75"),
        "percent of draws that are special",
    ),
    OptionSpec::new(
        "rand-pareto-h",
        Kind::Number(0.001, 0.999),
        Some("0.2"),
        "parameter h of pareto",
    ),
    OptionSpec::new(
        "rand-zipfian-exp",
        Kind::Number(0.0, 20.0),
        Some("0.8"),
        "exponent of zipfian",
    ),
];

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

    /// Uniform whole number from `least` to `most`, both included.
    pub fn uniform(&mut self, least: i64, most: i64) -> i64 {
        least + (self.unit() * (most - least + 1) as f64) as i64
    }

    /// Groups of eleven random digits joined by `-`: sysbench's text columns; fills `text` (119 bytes give ten groups, 59 five).
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

/// How keys are drawn from a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Mean of so many uniforms (Irwin-Hall).
    Gaussian {
        /// How many.
        iterations: u32,
    },
    /// Sysbench 1.0: a share `res` % of draws falls into the middle `pct` % of the range. As there, one uniform chooses
    /// the branch and the value, so that only a part of the middle is used.
    Special {
        /// Uniforms per gaussian draw.
        iterations: u32,
        /// Percent of keys.
        pct: f64,
        /// Percent of draws.
        res: f64,
    },
    /// `u` to the power ln h / ln (1 − h).
    Pareto {
        /// ln h / ln (1 − h).
        power: f64,
    },
    /// Zipf's law by rejection-inversion.
    Zipfian {
        /// The exponent.
        exponent: f64,
    },
}

impl Distribution {
    /// By `--rand-type` and the `--rand-*` parameters.
    pub fn from_options(values: &Values) -> Result<Self> {
        let iterations = u32::try_from(values.int("rand-spec-iter")?)?;
        let h = values.number("rand-pareto-h")?;
        Ok(match values.text("rand-type")?.unwrap_or_default() {
            "uniform" => Self::Uniform,
            "gaussian" => Self::Gaussian { iterations },
            "pareto" => Self::Pareto {
                power: h.ln() / (1.0 - h).ln(),
            },
            "zipfian" => Self::Zipfian {
                exponent: values.number("rand-zipfian-exp")?,
            },
            _ => Self::Special {
                iterations,
                pct: values.int("rand-spec-pct")? as f64,
                res: values.int("rand-spec-res")? as f64,
            },
        })
    }

    /// A key from `least` to `most`, both included.
    pub fn draw(self, rng: &mut Rng, least: i64, most: i64) -> i64 {
        let width = (most - least + 1) as f64;
        let offset = match self {
            Self::Uniform => rng.unit() * width,
            Self::Gaussian { iterations } => mean(rng, iterations) * width,
            Self::Special { iterations, pct, res } => special(rng, width - 1.0, iterations, pct, res),
            Self::Pareto { power } => rng.unit().powf(power) * width,
            Self::Zipfian { exponent } => zipf(rng, width, exponent) - 1.0,
        };
        (least + offset as i64).min(most)
    }
}

fn mean(rng: &mut Rng, iterations: u32) -> f64 {
    (0..iterations).map(|_| rng.unit()).sum::<f64>() / f64::from(iterations)
}

/// sb_rand_special of sysbench 1.0 (src/sb_rand.c), over offsets 0..=span.
fn special(rng: &mut Rng, span: f64, iterations: u32, pct: f64, res: f64) -> f64 {
    let choice = rng.unit();
    let reach = choice * span * (100.0 / (100.0 - res));
    if reach < span {
        return mean(rng, iterations) * span;
    }
    let window = span * pct / 100.0;
    choice * (window + 1.0) + span / 2.0 - window / 2.0
}

/// Rejection-inversion sampling from 1..=n (Hörmann and Derflinger, ACM TOMACS 6(3), 1996).
fn zipf(rng: &mut Rng, n: f64, exponent: f64) -> f64 {
    let h = |x: f64| x.powf(-exponent);
    let near_one = (1.0 - exponent).abs() < 1e-9;
    let integral = |x: f64| {
        if near_one {
            x.ln()
        } else {
            (x.powf(1.0 - exponent) - 1.0) / (1.0 - exponent)
        }
    };
    let inverse = |y: f64| {
        if near_one {
            y.exp()
        } else {
            (1.0 + y * (1.0 - exponent)).powf(1.0 / (1.0 - exponent))
        }
    };
    let low = integral(1.5) - 1.0;
    let high = integral(n + 0.5);
    let shortcut = 2.0 - inverse(integral(2.5) - h(2.0));
    loop {
        let u = high + rng.unit() * (low - high);
        let x = inverse(u);
        let k = (x + 0.5).floor().clamp(1.0, n);
        if k - x <= shortcut || u >= integral(k + 0.5) - h(k) {
            return k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_values() {
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
    fn a_thread_has_its_own_stream_and_keeps_it() {
        let draw = |seed, thread| {
            let mut rng = Rng::new(seed, thread);
            (0..8).map(|_| rng.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }

    /// Shares of draws on the hottest 1 % and 10 % of 10,000 keys, measured on sysbench with 400,000 draws.
    #[test]
    fn skew_is_that_of_sysbench() {
        let targets = [
            ("uniform", 0.015, 0.129),
            ("gaussian", 0.052, 0.451),
            ("special", 0.762, 0.865),
            ("pareto", 0.527, 0.728),
            ("zipfian", 0.301, 0.574),
        ];
        for (name, hottest_1, hottest_10) in targets {
            let values = Values::defaults(&[OPTIONS], &[("rand-type", name)]);
            let distribution = Distribution::from_options(&values).unwrap();
            let mut rng = Rng::new(1, 0);
            let mut hits = vec![0u32; 10_000];
            for _ in 0..400_000 {
                let key = distribution.draw(&mut rng, 1, 10_000);
                hits[usize::try_from(key - 1).unwrap()] += 1;
            }
            hits.sort_unstable_by(|a, b| b.cmp(a));
            let share = |keys: usize| f64::from(hits[..keys].iter().sum::<u32>()) / 400_000.0;
            assert!(
                (share(100) - hottest_1).abs() < 0.01,
                "{name} 1 %: {}",
                share(100)
            );
            assert!(
                (share(1000) - hottest_10).abs() < 0.01,
                "{name} 10 %: {}",
                share(1000)
            );
        }
    }

    #[test]
    fn special_uses_the_upper_part_of_its_window_only() {
        let special = Distribution::Special {
            iterations: 12,
            pct: 1.0,
            res: 75.0,
        };
        let mut rng = Rng::new(3, 0);
        let mut hits = vec![0u32; 10_001];
        for _ in 0..400_000 {
            hits[usize::try_from(special.draw(&mut rng, 1, 10_000)).unwrap()] += 1;
        }
        let hot: Vec<usize> = (1..=10_000).filter(|key| hits[*key] > 1000).collect();
        assert_eq!((hot.first(), hot.last()), (Some(&4975), Some(&5051)));
    }

    #[test]
    fn a_range_of_one_key_gives_that_key() {
        let values = |name| Values::defaults(&[OPTIONS], &[("rand-type", name)]);
        for name in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            let distribution = Distribution::from_options(&values(name)).unwrap();
            assert_eq!(distribution.draw(&mut Rng::new(1, 1), 5, 5), 5, "{name}");
        }
    }

    #[test]
    fn text_columns_have_sysbench_s_form() {
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
