//! Tests that programs use the buckets of the format, and that a refusal shows the reason of the
//! verifier.

use std::sync::Mutex;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::histogram::bucket;
use loadprint_recording::histogram::lower;

use super::Loaded;
use super::load_object;
use super::skeletons::broken::BrokenSkelBuilder;
use super::skeletons::bucket::BucketSkelBuilder;
use crate::Host;
use crate::NotRunning;

/// Tests run in parallel, and the log of libbpf is one for the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn load<Builder: SkelBuilder<'static>>(
    name: &str,
    builder: Builder,
) -> Result<(Loaded<Builder>, usize), NotRunning> {
    load_object(&Host::default(), name, builder, |_, _| Ok(()), |_| Ok(()))
}

/// Every lower bound and its neighbours, and powers of two up to the largest value.
fn values() -> Vec<u64> {
    let bounds = (0..BUCKETS).flat_map(|index| {
        let bound = lower(index);
        [bound.saturating_sub(1), bound, bound + 1]
    });
    let powers = (0..64).map(|power| u64::MAX >> power);
    bounds.chain(powers).collect()
}

#[test]
fn programs_use_the_buckets_of_the_format() {
    let _alone = ONE_AT_A_TIME.lock();
    let (mut programs, _) = load("bucket", BucketSkelBuilder::default()).unwrap();
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
fn refusal_shows_the_reason_of_the_verifier() {
    let _alone = ONE_AT_A_TIME.lock();
    let refused = load("broken", BrokenSkelBuilder::default()).map(drop);
    let Err(NotRunning::Unavailable(reason)) = refused else {
        panic!("the verifier accepted it");
    };
    assert!(reason.starts_with("ebpf broken: "), "{reason}");
    assert!(reason.contains("map_value_or_null"), "{reason}");
    assert_eq!(reason.lines().count(), 1, "{reason}");
}
