//! Tests the cost of the recorder's own eBPF programs on the running kernel. Needs root.

use std::process;
use std::rc::Rc;
use std::thread;

use crate::prelude::*;

/// System calls that the test makes between two readings.
const CALLS: u64 = 2_000;

#[test]
fn calls_on_a_cpu_add_calls_of_that_cpu_and_time() {
    let options = Options {
        cpusets: vec![
            ("server".to_owned(), "0".parse().unwrap()),
            ("nowhere".to_owned(), "4000".parse().unwrap()),
        ],
        ..watching(&[format!("load={}", process::id())])
    };
    let shared = Rc::default();
    let _attached = Live::sharing("ebpf_syscalls", &options, &shared);
    let mut programs = Live::sharing("ebpf_programs", &options, &shared);
    let before = programs.read();
    // Without calls of the program that does nothing, the time of measuring would be in every figure.
    let of_empty = &before["empty empty all"].numbers;
    assert!(
        of_empty["run_cnt"] >= 100 && of_empty["run_time_ns"] > 0,
        "{of_empty:?}"
    );
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(pin(0, 0));
            getppid(CALLS);
        });
    });
    let after = programs.read();
    let [all, here] =
        ["all", "server"].map(|cpus| between(&before, &after, &format!("syscalls sys_enter {cpus}")));
    assert!(all["run_cnt"] >= CALLS && all["calls"] >= CALLS, "{all:?}");
    assert!(all["run_time_ns"] > 0, "{all:?}");
    let columns: Vec<_> = here.numbers.keys().collect();
    assert_eq!(columns, ["calls"], "the kernel reports one sum for all CPUs");
    assert!(here["calls"] >= CALLS, "{here:?}");
    assert_eq!(after["syscalls sys_enter nowhere"].numbers["calls"], 0);
}

#[test]
fn probe_is_off_if_no_program_is_loaded() {
    let reason = refusal("ebpf_programs", &Options::default());
    assert!(
        matches!(&reason, NotRunning::Off(reason) if reason.contains("no eBPF program")),
        "{reason}"
    );
}
