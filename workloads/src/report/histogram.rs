//! Prints the latency histogram as sysbench does (sb_histogram.c of 1.0.20): 1024 logarithmic
//! buckets from 0.001 to 100,000 ms; the largest one is forty stars wide.

use std::collections::BTreeMap;

use crate::stats::histogram::Sparse;

const BUCKETS: f64 = 1024.0;
const MIN_MS: f64 = 0.001;
const MAX_MS: f64 = 100_000.0;
const WIDTH: u64 = 40;

fn bucket_of(ms: f64) -> u64 {
    let step = (BUCKETS - 1.0) / (MAX_MS.ln() - MIN_MS.ln());
    let position = (ms.clamp(MIN_MS, MAX_MS).ln() - MIN_MS.ln()) * step;
    (position + 0.5).floor() as u64
}

fn value_of(bucket: u64) -> f64 {
    let step = (MAX_MS.ln() - MIN_MS.ln()) / (BUCKETS - 1.0);
    (MIN_MS.ln() + bucket as f64 * step).exp()
}

/// Formats the histogram; latencies are in nanoseconds.
pub fn histogram(latency: &Sparse) -> String {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for counted in latency.iter() {
        *buckets
            .entry(bucket_of(counted.from_ns as f64 / 1e6))
            .or_default() += counted.count;
    }
    let fullest = buckets.values().copied().max().unwrap_or(1);
    let mut text = String::from(
        "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n",
    );
    for (bucket, count) in buckets {
        let stars = (count as f64 / fullest as f64 * WIDTH as f64 + 0.5).floor() as usize;
        text.push_str(&format!(
            "{:12.3} |{:<40} {count}\n",
            value_of(bucket),
            "*".repeat(stars)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::Buckets;
    use crate::stats::histogram::LiveHistogram;

    #[test]
    fn values_are_in_the_buckets_of_sysbench() {
        let live = LiveHistogram::default();
        (0..8).for_each(|_| live.record(2_110_000));
        (0..2).for_each(|_| live.record(50_000_000));
        let mut sums = Buckets::default();
        live.add_to(&mut sums);
        let text = histogram(&sums.since(&Buckets::default()));
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(2)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["2.106", &format!("|{}", "*".repeat(40)), "8"]);
        assert_eq!(rows[1], ["50.107", &format!("|{}", "*".repeat(10)), "2"]);
    }
}
