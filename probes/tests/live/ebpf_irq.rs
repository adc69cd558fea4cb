//! Compares the interrupt probe with the kernel's own counters. Needs root.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;

use crate::prelude::*;

const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The sum over CPUs of the lines of `/proc/softirqs` or `/proc/interrupts` whose first and last
/// word `wanted` accepts.
fn counted(file: &str, wanted: impl Fn(&str, &str) -> bool) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let cpus = text.lines().next().unwrap().split_ascii_whitespace().count();
    let line = |line: &str| -> u64 {
        let (name, rest) = line.split_once(':').unwrap();
        if !wanted(name.trim(), rest.rsplit(' ').next().unwrap_or_default()) {
            return 0;
        }
        let cells = rest.split_ascii_whitespace().take(cpus);
        cells.filter_map(|cell| cell.parse::<u64>().ok()).sum()
    };
    text.lines().skip(1).map(line).sum()
}

fn softirqs() -> Vec<u64> {
    SOFTIRQS
        .iter()
        .map(|kind| counted("/proc/softirqs", |name, _| name == *kind))
        .collect()
}

/// Hard interrupts of devices, whose lines have numbers.
fn of_devices(wanted: impl Fn(&str) -> bool) -> u64 {
    counted("/proc/interrupts", |line, device| {
        line.parse::<u32>().is_ok() && wanted(device)
    })
}

/// A reading of the probe, and the kernel's counters before and after it: interrupts occur in
/// between.
struct Bracket {
    reading: Reading,
    counters: [Vec<u64>; 2],
}

impl Bracket {
    fn new(probe: &mut Live, count: impl Fn() -> Vec<u64>) -> Self {
        let before = count();
        let reading = probe.read();
        let counters = [before, count()];
        Self { reading, counters }
    }

    /// The interrupts of a kind that the probe timed since `first`. They are at least the increase
    /// between the inner counters and at most that between the outer ones; each CPU can also be in
    /// an interrupt that the kernel has counted and that has not ended.
    fn since(&self, first: &Self, kind: &str, counter: usize) -> Row {
        let cpus = fs::read_to_string("/proc/stat").unwrap();
        let cpus = cpus.lines().filter(|line| line.starts_with("cpu")).count() as u64 - 1;
        let timed = between(&first.reading, &self.reading, kind);
        let [first, last] = [first, self].map(|bracket| [0, 1].map(|side| bracket.counters[side][counter]));
        let least = last[0].saturating_sub(first[1]).saturating_sub(cpus);
        let most = last[1] - first[0] + cpus;
        assert!(
            (least..=most).contains(&timed.count()),
            "{kind}: {} timed, {least} to {most} counted",
            timed.count()
        );
        timed
    }
}

#[test]
fn soft_interrupts_equal_the_counters_of_the_kernel() {
    let mut probe = Live::open("ebpf_irq", &Options::default());
    let first = Bracket::new(&mut probe, softirqs);
    // Each datagram over loopback is received in a NET_RX soft interrupt.
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..1000 {
        let address = receiver.local_addr().unwrap();
        sender.send_to(&[1], address).unwrap();
        receiver.recv(&mut [0]).unwrap();
    }
    let last = Bracket::new(&mut probe, softirqs);
    for (place, kind) in SOFTIRQS.iter().enumerate() {
        last.since(&first, kind, place);
    }
    let received = between(&first.reading, &last.reading, "NET_RX");
    assert!(received.count() >= 1000, "the test waited for each: {received:?}");
    let shortest = received.filled()[0].0;
    assert!(
        shortest > 0 && received["sum_ns"] >= 1000 * shortest,
        "a soft interrupt takes time: {received:?}"
    );
}

#[test]
fn hard_interrupts_by_device_equal_the_counters_of_the_kernel() {
    let mut probe = Live::open("ebpf_irq", &Options::default());
    let devices: BTreeSet<String> = fs::read_to_string("/proc/interrupts")
        .unwrap()
        .lines()
        .map(|line| name_of(line.rsplit(' ').next().unwrap()).to_owned())
        .collect();
    let count = || {
        let by_device = devices
            .iter()
            .map(|name| of_devices(|device| name_of(device) == name));
        by_device.chain([of_devices(|_| true)]).collect()
    };
    let first = Bracket::new(&mut probe, count);
    let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for _ in 0..23 {
        file.write_all(b"a line of a log\n").unwrap();
        file.sync_all().unwrap();
    }
    let last = Bracket::new(&mut probe, count);
    last.since(&first, "hard", devices.len());
    let kinds = devices.iter().map(|device| format!("hard:{device}")).enumerate();
    let known = kinds.filter(|(_, kind)| last.reading.contains_key(kind));
    let most = known
        .map(|(place, kind)| last.since(&first, &kind, place).count())
        .max();
    // Each sync waits for the disk at least once, which reports completion with an interrupt.
    assert!(most >= Some(23), "{most:?}");
}

/// The name of a line without the number of its queue.
fn name_of(device: &str) -> &str {
    device.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.')
}
