//! Draws keys of a table by one of sysbench's distributions.

use anyhow::Result;

use super::Options;
use super::RandType;
use super::Rng;
use crate::options::Values;

/// The distribution of keys, independent of their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    shape: Shape,
    scramble: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// Equal probabilities.
    Uniform,
    /// Mean of this number of uniform random numbers (Irwin-Hall).
    Gaussian { iterations: u32 },
    /// Sysbench 1.0: `res` % of draws are in the middle `pct` % of the range. As in sysbench, one
    /// random number selects the branch and the value, so that only a part of the middle is used.
    Special { iterations: u32, pct: f64, res: f64 },
    /// `u` to the power ln h / ln (1 − h).
    Pareto { power: f64 },
    /// Zipf's law.
    Zipfian { exponent: f64 },
}

impl Distribution {
    /// From `--rand-type`, the `--rand-*` parameters and `--scramble`.
    pub fn from_options(values: &Values) -> Result<Self> {
        let options: Options = values.read()?;
        let iterations = options.rand_spec_iter;
        let shape = match options.rand_type {
            RandType::Uniform => Shape::Uniform,
            RandType::Gaussian => Shape::Gaussian { iterations },
            RandType::Pareto => Shape::Pareto {
                power: options.rand_pareto_h.ln() / (1.0 - options.rand_pareto_h).ln(),
            },
            RandType::Zipfian => Shape::Zipfian {
                exponent: options.rand_zipfian_exp,
            },
            RandType::Special => Shape::Special {
                iterations,
                pct: options.rand_spec_pct,
                res: options.rand_spec_res,
            },
        };
        Ok(Self {
            shape,
            scramble: options.scramble,
        })
    }

    /// Equal probabilities, independent of the options.
    pub const fn uniform() -> Self {
        Self {
            shape: Shape::Uniform,
            scramble: false,
        }
    }

    /// The keys from `lowest` to `highest`, both included, fewer than 2³².
    pub fn over(self, lowest: i64, highest: i64) -> Keys {
        let width = (highest - lowest + 1) as f64;
        let exponent = match self.shape {
            Shape::Zipfian { exponent } => exponent,
            _ => 0.0,
        };
        Keys {
            lowest,
            last: highest - lowest,
            width,
            shape: self.shape,
            zipf: Zipf::new(width, exponent),
            scramble: self
                .scramble
                .then(|| Scramble::new(u64::try_from(highest - lowest + 1).unwrap_or(1))),
        }
    }
}

/// A range of keys and their distribution.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    lowest: i64,
    /// Distance from the lowest to the highest key.
    last: i64,
    width: f64,
    shape: Shape,
    /// The constants of `Zipfian`; unused by the others.
    zipf: Zipf,
    scramble: Option<Scramble>,
}

impl Keys {
    /// Their number.
    pub fn count(&self) -> i64 {
        self.last + 1
    }

    /// Draws a key.
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        let offset = match self.shape {
            Shape::Uniform => rng.unit() * self.width,
            Shape::Gaussian { iterations } => mean(rng, iterations) * self.width,
            Shape::Special { iterations, pct, res } => special(rng, self.width - 1.0, iterations, pct, res),
            Shape::Pareto { power } => rng.unit().powf(power) * self.width,
            Shape::Zipfian { .. } => self.zipf.draw(rng) - 1.0,
        };
        let offset = (offset as i64).min(self.last);
        let offset = match self.scramble {
            None => offset,
            Some(scramble) => scramble.apply(offset as u64) as i64,
        };
        self.lowest + offset
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

/// Draws from 1..=n with probability proportional to k to the power −exponent, by
/// rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996), with precomputed constants.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Zipf {
    n: f64,
    exponent: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    /// For n keys.
    fn new(n: f64, exponent: f64) -> Self {
        let mut zipf = Self {
            n,
            exponent,
            low: 0.0,
            high: 0.0,
            shortcut: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws a key, an integer.
    fn draw(&self, rng: &mut Rng) -> f64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.density(k) {
                return k;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    fn near_one(&self) -> bool {
        (1.0 - self.exponent).abs() < 1e-9
    }

    fn integral(&self, x: f64) -> f64 {
        if self.near_one() {
            x.ln()
        } else {
            (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent)
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        if self.near_one() {
            y.exp()
        } else {
            (1.0 + y * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent))
        }
    }
}

/// A fixed permutation that separates adjacent keys.
///
/// i ↦ i × step mod n, a bijection: step is near n ÷ golden ratio and coprime to n. Multiples of
/// the golden ratio leave no large gap and no close pair (Knuth, TAOCP 3, 6.4), so that m adjacent
/// hot keys become about n ÷ m apart. It depends on n only: every thread, run and seed has the same
/// hot keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scramble {
    keys: u64,
    step: u64,
}

impl Scramble {
    /// For keys 0..`keys`, fewer than 2³².
    fn new(keys: u64) -> Self {
        let golden = (keys as f64 * 0.618_033_988_749_894_9) as u64;
        // keys − 1 is coprime to keys, so that the search ends.
        let step = (golden.max(1)..keys).find(|step| gcd(*step, keys) == 1);
        Self {
            keys: keys.max(1),
            step: step.unwrap_or(1),
        }
    }

    /// The permuted key.
    fn apply(self, key: u64) -> u64 {
        key * self.step % self.keys
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::super::OPTIONS;
    use super::*;

    fn distribution(name: &str, scramble: &str) -> Distribution {
        let values = Values::defaults(&[OPTIONS], &[("rand-type", name), ("scramble", scramble)]);
        Distribution::from_options(&values).unwrap()
    }

    /// The frequency of each of the keys 1..=10,000 in 400,000 draws.
    fn hits(distribution: Distribution) -> Vec<u32> {
        let keys = distribution.over(1, 10_000);
        let mut rng = Rng::new(1, 0);
        let mut hits = vec![0u32; 10_000];
        for _ in 0..400_000 {
            hits[usize::try_from(keys.draw(&mut rng) - 1).unwrap()] += 1;
        }
        hits
    }

    /// Shares of draws on the hottest 1 % and 10 % of 10,000 keys, measured on sysbench with
    /// 400,000 draws.
    #[test]
    fn skew_is_that_of_sysbench_scrambled_or_not() {
        let targets = [
            ("uniform", 0.015, 0.129),
            ("gaussian", 0.052, 0.451),
            ("special", 0.762, 0.865),
            ("pareto", 0.527, 0.728),
            ("zipfian", 0.301, 0.574),
        ];
        for ((name, hottest_1, hottest_10), scramble) in targets
            .into_iter()
            .flat_map(|target| ["off", "on"].map(|scramble| (target, scramble)))
        {
            let mut hits = hits(distribution(name, scramble));
            hits.sort_unstable_by(|a, b| b.cmp(a));
            let share = |keys: usize| f64::from(hits[..keys].iter().sum::<u32>()) / 400_000.0;
            for (keys, target) in [(100, hottest_1), (1000, hottest_10)] {
                let share = share(keys);
                assert!(
                    (share - target).abs() < 0.01,
                    "{name}, {keys} keys, scramble {scramble}: {share}"
                );
            }
        }
    }

    #[test]
    fn special_uses_only_the_upper_part_of_its_window() {
        let hits = hits(distribution("special", "off"));
        let hot: Vec<usize> = (1..=10_000).filter(|key| hits[key - 1] > 500).collect();
        assert_eq!((hot.first(), hot.last()), (Some(&4975), Some(&5051)));
    }

    #[test]
    fn scrambled_hot_keys_are_spread_evenly() {
        let hits = hits(distribution("special", "on"));
        let hot: Vec<usize> = (1..=10_000).filter(|key| hits[key - 1] > 500).collect();
        assert_eq!(hot.len(), 77);
        // 10,000 ÷ 77 is 130; no gap of golden multiples is larger than about twice that or smaller
        // than a third.
        let gaps: Vec<usize> = hot.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (43..=260).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn a_range_of_one_key_gives_that_key() {
        for name in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            for scramble in ["off", "on"] {
                let keys = distribution(name, scramble).over(5, 5);
                assert_eq!(keys.draw(&mut Rng::new(1, 1)), 5, "{name}");
            }
        }
    }

    /// The shares of all keys against the law, for exponents below, at and above one.
    #[test]
    fn keys_have_the_frequencies_of_the_law() {
        for exponent in [0.0, 0.8, 1.0, 1.5] {
            let weights: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-exponent)).collect();
            let total: f64 = weights.iter().sum();
            let zipf = Zipf::new(50.0, exponent);
            let mut rng = Rng::new(11, 0);
            let mut hits = [0u32; 50];
            for _ in 0..400_000 {
                hits[zipf.draw(&mut rng) as usize - 1] += 1;
            }
            for (k, (hits, weight)) in hits.iter().zip(&weights).enumerate() {
                let (share, expected) = (f64::from(*hits) / 400_000.0, weight / total);
                assert!(
                    (share - expected).abs() < 0.004,
                    "{exponent}, {}: {share} {expected}",
                    k + 1
                );
            }
        }
    }

    #[test]
    fn scrambling_is_a_permutation() {
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
}
