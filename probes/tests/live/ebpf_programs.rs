//! Tests the cost of the recorder's own eBPF programs on the running kernel. Needs root.

use crate::common;
use std::mem::size_of;
use std::mem::zeroed;
use std::process;
use std::rc::Rc;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// System calls that the test makes between two readings.
const CALLS: u64 = 2_000;

fn open(name: &str, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    common::entry(name).open(&Host::default(), options, shared)
}

/// The columns of one row; `None` for null.
fn row(probe: &mut dyn Probe, entity: [&str; 3]) -> [Option<u64>; 3] {
    let mut rows = Rows::default();
    common::read(probe, &mut rows).unwrap();
    let wanted = entity.map(str::as_bytes);
    let row = (0..rows.len())
        .find(|row| rows.entity(*row).eq(wanted))
        .unwrap_or_else(|| panic!("no row {entity:?}"));
    [0, 1, 2].map(|column| match rows.value(row, column, 3) {
        Value::Bits(bits) => Some(bits),
        _ => None,
    })
}

/// Runs `work` on one CPU only, and then restores the affinity of the thread.
fn on_cpu(cpu: usize, work: impl FnOnce()) {
    // SAFETY: the sets are local variables of the given size.
    unsafe {
        let mut before: libc::cpu_set_t = zeroed();
        let size = size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut before), 0);
        let mut only: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut only);
        assert_eq!(libc::sched_setaffinity(0, size, &raw const only), 0);
        work();
        assert_eq!(libc::sched_setaffinity(0, size, &raw const before), 0);
    }
}

#[test]
fn calls_on_a_cpu_add_calls_of_that_cpu_and_time() {
    let options = Options {
        processes: vec![format!("load={}", process::id()).parse().unwrap()],
        cpusets: vec![
            ("server".to_owned(), "0".parse().unwrap()),
            ("nowhere".to_owned(), "4000".parse().unwrap()),
        ],
        ..Options::default()
    };
    let shared = Rc::default();
    let _attached = open("ebpf_syscalls", &options, &shared).unwrap();
    let mut programs = open("ebpf_programs", &options, &shared).unwrap();
    let on = |cpus| ["syscalls", "sys_enter", cpus];
    let before = row(programs.as_mut(), on("all")).map(Option::unwrap);
    let here = row(programs.as_mut(), on("server"));
    on_cpu(0, || {
        for _ in 0..CALLS {
            // SAFETY: getppid(2) takes nothing and cannot fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
    });
    let after = row(programs.as_mut(), on("all")).map(Option::unwrap);
    let [time, count, calls] = [0, 1, 2].map(|column| after[column] - before[column]);
    assert!(count >= CALLS, "run_cnt grew by {count}");
    assert!(calls >= CALLS, "calls grew by {calls}");
    assert!(time > 0, "no time for {count} calls");

    let [none, no_count, there] = row(programs.as_mut(), on("server"));
    assert_eq!(
        (none, no_count),
        (None, None),
        "the kernel reports one sum for all CPUs"
    );
    assert!(there.unwrap() - here[2].unwrap() >= CALLS);
    assert_eq!(row(programs.as_mut(), on("nowhere"))[2], Some(0));
}

#[test]
fn probe_is_off_if_no_program_is_loaded() {
    let opened = open("ebpf_programs", &Options::default(), &Rc::default()).map(drop);
    assert!(
        matches!(&opened, Err(NotRunning::Off(reason)) if reason.contains("no eBPF program")),
        "{opened:?}"
    );
}
