//! Tests the capabilities of a running recorder's threads, and that they are sufficient.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::collect;
use crate::common::read;
use crate::common::stderr;
use crate::common::strings;
use tempfile::tempdir;

const TERM: i32 = 15;

/// Capabilities by number (linux/capability.h).
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;

/// The capability sets of a thread and its no_new_privs flag, by the names of
/// `/proc/PID/task/TID/status`; `None` if the thread has exited.
fn privileges(status: &Path) -> Option<BTreeMap<String, u64>> {
    let text = fs::read_to_string(status).ok()?;
    let words = text.lines().filter_map(|line| line.split_once(':'));
    let sets = words
        .filter(|(name, _)| name.starts_with("Cap") || *name == "NoNewPrivs")
        .map(|(name, value)| (name.to_owned(), u64::from_str_radix(value.trim(), 16).unwrap()));
    Some(sets.collect())
}

fn assert_keeps(recorder: &Recorder, wanted: u64) {
    let may = privileges(Path::new("/proc/self/status")).unwrap()["CapPrm"];
    let kept = wanted & may;
    let pid = recorder.0.as_ref().unwrap().id();
    let mut threads = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = thread.unwrap().path().join("status");
        let Some(actual) = privileges(&status) else {
            continue;
        };
        threads += 1;
        let mut expected = BTreeMap::from(
            [
                ("CapInh", 0),
                ("CapPrm", kept),
                ("CapEff", kept),
                ("CapBnd", kept),
                ("CapAmb", 0),
                ("NoNewPrivs", 1),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        if may == 0 {
            // Without CAP_SETPCAP the bounding set cannot be reduced.
            expected.insert("CapBnd".to_owned(), actual["CapBnd"]);
        }
        assert_eq!(actual, expected, "{}", status.display());
    }
    assert!(threads > 0);
}

#[test]
fn every_thread_keeps_only_the_capabilities_of_later_reads() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let this_process = format!("server={}", std::process::id());
    let recorder = Recorder::start(&run, &["--interval", "20ms", "--process", &this_process]);
    assert_keeps(&recorder, DAC_READ_SEARCH | SYS_PTRACE);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));

    let run = dir.path().join("plain");
    let recorder = Recorder::start(&run, &["--interval", "20ms", "--probes", "cpu,ebpf_irq"]);
    assert_keeps(&recorder, DAC_READ_SEARCH);
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
    let mut command = collect(&["record", "--interval", "20ms"]);
    let recorder = Recorder::launch(command.env("SUDO_UID", "4711"), &run);
    assert_keeps(&recorder, DAC_OVERRIDE | DAC_READ_SEARCH | SYS_PTRACE);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_manifest(&run);
    let probes = strings(&read(run.join("server/ticks.parquet")), "probe");
    assert!(probes.contains(&"cpu".to_owned()), "{probes:?}");
}
