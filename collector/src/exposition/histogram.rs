//! Exports histograms with cumulative buckets, one per power of two to keep a scrape small.
//!
//! A recorded bucket counts integers in `[lower, next)`, a Prometheus bucket counts values up to
//! and including `le`. Each bound is the largest integer below a power of two, so every count is
//! exact.

use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::histogram::bucket;
use loadprint_recording::schema::Unit;

use super::families::Family;
use super::families::Number;
use super::unit;

/// The powers of two that bound the usual values of a unit; other values are in the first or the
/// last bucket.
fn powers(unit: Unit) -> std::ops::RangeInclusive<u32> {
    match unit {
        // 1 µs to 69 s.
        Unit::Nanosecond => 10..=36,
        // 511 bytes to 128 MiB.
        Unit::Byte => 9..=27,
        _ => 0..=36,
    }
}

/// Appends a histogram with the buckets of `loadprint_recording::histogram`. Without `sum` it has
/// no `_count` either, as OpenMetrics requires.
pub fn write(family: &mut Family, labels: &[(&str, &[u8])], counts: &[u64], sum: Option<Number>, unit: Unit) {
    if counts.len() != BUCKETS {
        return;
    }
    let (mut below, mut total) = (0, 0_u64);
    for power in powers(unit) {
        let next = bucket(1 << power);
        total = counts[below..next]
            .iter()
            .fold(total, |sum, count| sum.wrapping_add(*count));
        below = next;
        let bound = unit::to_base(((1_u64 << power) - 1) as f64, unit);
        line(family, labels, &format!("{bound:?}"), total);
    }
    total = counts[below..]
        .iter()
        .fold(total, |sum, count| sum.wrapping_add(*count));
    line(family, labels, "+Inf", total);
    if let Some(sum) = sum {
        family.suffixed("_sum", labels.iter().copied(), sum);
        family.suffixed("_count", labels.iter().copied(), Number::Uint(total));
    }
}

fn line(family: &mut Family, labels: &[(&str, &[u8])], bound: &str, count: u64) {
    let le = ("le", bound.as_bytes());
    family.suffixed("_bucket", labels.iter().copied().chain([le]), Number::Uint(count));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::families::Families;
    use crate::exposition::families::Kind;

    #[test]
    fn every_bucket_counts_the_values_up_to_its_bound() {
        let values = [
            0_u64,
            1,
            511,
            512,
            513,
            4095,
            4096,
            4097,
            8191,
            8192,
            1 << 20,
            (1 << 27) - 1,
            1 << 27,
            1 << 40,
        ];
        let mut counts = vec![0; BUCKETS];
        values.iter().for_each(|value| counts[bucket(*value)] += 1);
        let mut families = Families::default();
        let family = families.family("x_bytes", Kind::Histogram, "sizes");
        write(
            family,
            &[("device", b"vda")],
            &counts,
            Some(Number::Uint(7)),
            Unit::Byte,
        );
        let (mut seen, mut samples) = (0, family.samples.lines());
        for line in samples.by_ref() {
            let (head, count) = line.rsplit_once(' ').unwrap();
            let Some((_, le)) = head.split_once("le=\"") else {
                break;
            };
            let le: f64 = le.trim_end_matches("\"}").replace("+Inf", "inf").parse().unwrap();
            let below = values.iter().filter(|value| **value as f64 <= le).count();
            assert_eq!(count, below.to_string(), "{line}");
            seen += 1;
        }
        assert_eq!(seen, 20);
        assert_eq!(samples.next(), Some("x_bytes_count{device=\"vda\"} 14"));
    }
}
