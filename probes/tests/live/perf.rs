//! Tests counters on CPUs with software events of the kernel, which need no PMU.

use crate::prelude::*;
use std::ptr::null_mut;

use loadprint_probes::Probe;
use loadprint_probes::perf::Event;
use loadprint_probes::perf::open_events;
use perf_event::Builder;
use perf_event::events::Software;
use rustix::param::page_size;

const PAGES: usize = 20_000;
const NAPS: u64 = 5;

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

/// Opens the probe with events of the kernel on one CPU.
fn open_software(cpu: usize, events: &[(&'static str, Software)]) -> Result<Box<dyn Probe>, NotRunning> {
    let options = Options {
        cpusets: vec![("server".to_owned(), cpu.to_string().parse().unwrap())],
        ..Options::default()
    };
    let events = events
        .iter()
        .map(|(name, event)| (*name, Event::Software(*event)));
    open_events(&Host::default(), &options, &events.collect::<Vec<_>>())
}

#[test]
fn faults_and_switches_on_a_cpu_are_counted_there() {
    let events = [
        ("page_faults", Software::PAGE_FAULTS),
        ("context_switches", Software::CONTEXT_SWITCHES),
        ("cpu_clock", Software::CPU_CLOCK),
    ];
    assert!(pin(0, 0));
    let mut probe = Live::of("perf", open_software(0, &events).unwrap());
    let mut faults = Builder::new(Software::PAGE_FAULTS);
    let faults = faults.observe_self().any_cpu().include_kernel().enabled(true);
    let mut faults = faults.build().unwrap();
    let before = probe.read();
    let faults_before = faults.read().unwrap();
    fault();
    (0..NAPS).for_each(|_| nap());
    let thread_faults = faults.read().unwrap() - faults_before;
    let after = probe.read();
    assert!(
        thread_faults >= PAGES as u64,
        "one fault for each page: {thread_faults}"
    );
    for (event, least) in [
        ("page_faults", thread_faults),
        ("context_switches", NAPS),
        ("cpu_clock", 1),
    ] {
        let new = between(&before, &after, &format!("{event} server"));
        // Other threads on that CPU count too.
        assert!(new["value"] >= least, "{event}: {new:?}");
        assert!(new["enabled_ns"] > 0, "{event}: {new:?}");
        let row = &after[&format!("{event} server")];
        assert_eq!(
            row["enabled_ns"], row["running_ns"],
            "{event}: the kernel's own counters need no turns"
        );
    }
    // The value of a clock event is the time that it ran; this detects swapped columns.
    let clock = between(&before, &after, "cpu_clock server");
    let (counted, ran) = (clock["value"] as f64, clock["running_ns"] as f64);
    assert!((counted / ran - 1.0).abs() < 0.5, "{counted} ns in {ran} ns");
}

/// Passes on hosts with and without a PMU.
#[test]
fn hardware_counters_count_or_are_unavailable() {
    match common::open(common::entry("perf"), &Host::default(), &Options::default()) {
        Ok(probe) => {
            let cycles = &Live::of("perf", probe).read()["cycles all"];
            assert_eq!(cycles.numbers.contains_key("value"), cycles["running_ns"] > 0);
            assert!(cycles["enabled_ns"] > 0, "{cycles:?}");
        }
        Err(NotRunning::Unavailable(reason)) => assert!(reason.contains("(PMU)"), "{reason}"),
        Err(reason) => panic!("{reason}"),
    }
}

#[test]
fn cpu_set_without_online_cpus_is_an_error() {
    let refusal = open_software(8000, &[("cpu_clock", Software::CPU_CLOCK)]).unwrap_err();
    assert!(
        refusal.to_string().contains("no CPU of the CPU sets is online"),
        "{refusal}"
    );
}
