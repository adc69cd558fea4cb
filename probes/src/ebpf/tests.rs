//! What all programs rely on: the kernel side's buckets, and that a refusal is told in the verifier's words.

use std::sync::Mutex;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::histogram::bucket;
use loadprint_recording::histogram::lower;

use super::loaded;
use super::object;
use super::skeletons::broken::BrokenSkelBuilder;
use super::skeletons::bucket::BucketSkelBuilder;
use crate::Host;
use crate::NotRunning;

/// What libbpf says is kept in one place, and tests run side by side.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Every bound and its neighbours, small values singly, and the largest.
fn values() -> Vec<u64> {
    let bounds = (0..280).flat_map(|index| {
        let bound = lower(index);
        [bound.saturating_sub(1), bound, bound + 1]
    });
    let powers = (0..64).map(|power| u64::MAX >> power);
    bounds.chain(powers).collect()
}

#[test]
fn the_programs_count_in_the_same_buckets() {
    let _alone = ONE_AT_A_TIME.lock();
    let programs = loaded(&Host::default(), "bucket", |_| {
        BucketSkelBuilder::default().open(object())?.load()
    });
    let mut programs = programs.unwrap();
    let values = values();
    let data = programs.maps.bss_data.as_deref_mut().unwrap();
    assert!(values.len() <= data.values.len());
    data.values[..values.len()].copy_from_slice(&values);
    programs.progs.bucket.test_run(ProgramInput::default()).unwrap();
    let data = programs.maps.bss_data.as_deref().unwrap();
    for (value, index) in values.iter().zip(&data.buckets) {
        assert_eq!(*index as usize, bucket(*value), "{value}");
    }
}

#[test]
fn a_refusal_is_told_in_the_verifiers_words() {
    let _alone = ONE_AT_A_TIME.lock();
    let refused = loaded(&Host::default(), "broken", |_| {
        BrokenSkelBuilder::default().open(object())?.load()
    });
    let Err(NotRunning::Unavailable(reason)) = refused.map(drop) else {
        panic!("the verifier took it");
    };
    assert!(reason.starts_with("ebpf broken: "), "{reason}");
    assert!(reason.contains("map_value_or_null"), "{reason}");
    assert_eq!(reason.lines().count(), 1, "{reason}");
}
