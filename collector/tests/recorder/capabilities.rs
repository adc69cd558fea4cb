//! Tests the capabilities of a running recorder's threads, and that they are sufficient.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::collect;
use crate::common::column;
use rustix::thread::CapabilitySet;
use rustix::thread::capabilities;
use tempfile::tempdir;

const WRITES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
const READS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;
const TRACES: CapabilitySet = CapabilitySet::SYS_PTRACE;

/// Checks the sets in `/proc/PID/task/TID/status` of every thread.
fn assert_keeps(recorder: &Recorder, wanted: CapabilitySet) {
    let may = capabilities(None).unwrap().permitted;
    let kept = format!("{:016x}", (wanted & may).bits());
    let mut threads = 0;
    for thread in fs::read_dir(format!("/proc/{}/task", recorder.pid())).unwrap() {
        // The thread may have exited.
        let Ok(status) = fs::read_to_string(thread.unwrap().path().join("status")) else {
            continue;
        };
        threads += 1;
        let none = "0000000000000000";
        for (name, expected) in [
            ("CapInh", none),
            ("CapPrm", &kept),
            ("CapEff", &kept),
            ("CapBnd", &kept),
            ("CapAmb", none),
            ("NoNewPrivs", "1"),
        ] {
            // Without CAP_SETPCAP the bounding set cannot be reduced.
            if name != "CapBnd" || !may.is_empty() {
                assert!(status.contains(&format!("{name}:\t{expected}\n")), "{status}");
            }
        }
    }
    assert!(threads > 0);
}

#[test]
fn every_thread_keeps_only_the_capabilities_of_later_reads() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let words = format!("--interval 20ms --process server={}", std::process::id());
    let recorder = Recorder::start(&run, &words);
    assert_keeps(&recorder, READS | TRACES);
    recorder.stop();

    let run = dir.path().join("plain");
    let recorder = Recorder::start(&run, "--interval 20ms --probes cpu,ebpf_irq");
    assert_keeps(&recorder, READS);
}

/// A recorder of root keeps the capability to write into a run directory of the user of sudo.
#[test]
fn a_run_directory_of_the_user_of_sudo_is_finished() {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let run = dir.path().join("run");
    fs::create_dir_all(run.join("load")).unwrap();
    let result = run.join("load/result.json");
    fs::write(&result, "{}").unwrap();
    fs::set_permissions(&result, fs::Permissions::from_mode(0o600)).unwrap();
    for path in [&run, &run.join("load"), &result] {
        chown(path, Some(4711), Some(4711)).unwrap();
    }
    let mut command = collect("record --interval 20ms");
    let recorder = Recorder::launch(command.env("SUDO_UID", "4711"), &run);
    assert_keeps(&recorder, WRITES | READS | TRACES);
    recorder.stop();
    assert_manifest(&run);
    let probes = column(run.join("server/ticks.parquet"), "probe");
    assert!(probes.contains(&"cpu".to_owned()), "{probes:?}");
}
