//! Draws from Zipf's law by rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996),
//! with precomputed constants.

use super::Rng;

/// Draws from 1..=n with probability proportional to k to the power −exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    /// For n keys.
    pub fn new(n: f64, exponent: f64) -> Self {
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
    pub fn draw(&self, rng: &mut Rng) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
