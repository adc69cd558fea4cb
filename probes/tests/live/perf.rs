//! Tests counters on CPUs with software events of the kernel, which need no PMU.

use crate::common;
use std::collections::BTreeMap;
use std::ptr::null_mut;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::perf::Event;
use loadprint_probes::perf::open_events;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use perf_event::Builder;
use perf_event::Counter;
use perf_event::events::Software;
use rustix::param::page_size;
use rustix::thread::CpuSet;
use rustix::thread::sched_getaffinity;
use rustix::thread::sched_setaffinity;

const PAGES: usize = 20_000;

/// Value, time enabled and time running of every event and set of CPUs.
fn readings(probe: &mut dyn Probe) -> BTreeMap<(String, String), [Option<u64>; 3]> {
    let mut rows = Rows::default();
    common::read(probe, &mut rows).unwrap();
    (0..rows.len())
        .map(|row| {
            let mut names = rows
                .entity(row)
                .map(|name| String::from_utf8(name.to_vec()).unwrap());
            let cell = |column| match rows.value(row, column, 3) {
                Value::Bits(bits) => Some(bits),
                _ => None,
            };
            (
                (names.next().unwrap(), names.next().unwrap()),
                [cell(0), cell(1), cell(2)],
            )
        })
        .collect()
}

/// Pins this thread to the first CPU that it is allowed to use, and returns the CPU.
fn pin() -> usize {
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).unwrap();
    cpu
}

/// Touches `PAGES` new pages, with one fault each.
fn fault() {
    let length = PAGES * page_size();
    let (rights, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory of that length without huge pages; it is written within its bounds and
    // unmapped.
    unsafe {
        let memory = libc::mmap(null_mut(), length, rights, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, length, libc::MADV_NOHUGEPAGE);
        for page in 0..PAGES {
            memory.cast::<u8>().add(page * page_size()).write_volatile(1);
        }
        libc::munmap(memory, length);
    }
}

/// A counter of this thread, in user mode.
fn thread_counter(event: Software) -> Counter {
    Builder::new(event)
        .observe_self()
        .any_cpu()
        .include_kernel()
        .enabled(true)
        .build()
        .unwrap()
}

#[test]
fn faults_and_switches_on_a_cpu_are_counted_there() {
    let events = [
        ("page_faults", Event::Software(Software::PAGE_FAULTS)),
        ("context_switches", Event::Software(Software::CONTEXT_SWITCHES)),
        ("cpu_clock", Event::Software(Software::CPU_CLOCK)),
    ];
    let cpu = pin();
    let options = Options {
        cpusets: vec![("server".to_owned(), cpu.to_string().parse().unwrap())],
        ..Options::default()
    };
    let mut probe = open_events(&Host::default(), &options, &events).unwrap();
    let mut faults = thread_counter(Software::PAGE_FAULTS);
    let before = readings(probe.as_mut());
    let faults_before = faults.read().unwrap();
    fault();
    let thread_faults = faults.read().unwrap() - faults_before;
    let after = readings(probe.as_mut());
    assert!(
        thread_faults >= PAGES as u64,
        "one fault for each page: {thread_faults}"
    );

    let of = |all: &BTreeMap<_, [Option<u64>; 3]>, event: &str, cpus: &str| {
        all[&(event.to_owned(), cpus.to_owned())].map(Option::unwrap)
    };
    for (event, least) in [
        ("page_faults", thread_faults),
        ("context_switches", 0),
        ("cpu_clock", 1),
    ] {
        let (first, last) = (of(&before, event, "server"), of(&after, event, "server"));
        // Other threads on that CPU count too.
        assert!(last[0] - first[0] >= least, "{event}: {first:?} {last:?}");
        assert!(last[1] > first[1], "{event}: {first:?} {last:?}");
        assert_eq!(
            last[1], last[2],
            "{event}: the kernel's own counters need no turns"
        );
    }
    // The value of a clock event is the time that it ran; this detects swapped columns.
    let (first, last) = (
        of(&before, "cpu_clock", "server"),
        of(&after, "cpu_clock", "server"),
    );
    let (counted, ran) = ((last[0] - first[0]) as f64, (last[2] - first[2]) as f64);
    assert!((counted / ran - 1.0).abs() < 0.5, "{counted} ns in {ran} ns");
}

/// Passes on hosts with and without a PMU.
#[test]
fn hardware_counters_count_or_are_unavailable() {
    match common::open(common::entry("perf"), &Host::default(), &Options::default()) {
        Ok(mut probe) => {
            let readings = readings(probe.as_mut());
            let [value, enabled, running] = readings[&("cycles".to_owned(), "all".to_owned())];
            assert_eq!(value.is_some(), running.is_some_and(|running| running > 0));
            assert!(enabled > Some(0), "{readings:?}");
        }
        Err(NotRunning::Unavailable(reason)) => assert!(reason.contains("(PMU)"), "{reason}"),
        Err(reason) => panic!("{reason}"),
    }
}

#[test]
fn cpu_set_without_online_cpus_is_an_error() {
    let options = Options {
        cpusets: vec![("server".to_owned(), "8000".parse().unwrap())],
        ..Options::default()
    };
    let clock = [("cpu_clock", Event::Software(Software::CPU_CLOCK))];
    let refusal = open_events(&Host::default(), &options, &clock).unwrap_err();
    assert!(
        refusal.to_string().contains("no CPU of the CPU sets is online"),
        "{refusal}"
    );
}
