//! What a running recorder may still do, thread by thread, and that it is enough.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;

use common::Recorder;
use common::read;
use common::stderr;
use common::strings;
use loadprint_recording::manifest;
use tempfile::tempdir;

const TERM: i32 = 15;

/// capabilities(7), by number.
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;

/// The sets of one thread and whether it can gain others, by the names of `/proc/PID/task/TID/status`; none for a thread that has
/// ended since it was listed.
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
        let Some(found) = privileges(&status) else {
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
            // Only who may hand capabilities on can shorten the list of those that there are.
            expected.insert("CapBnd".to_owned(), found["CapBnd"]);
        }
        assert_eq!(found, expected, "{}", status.display());
    }
    assert!(threads > 0);
}

#[test]
fn every_thread_keeps_what_later_reads_need_and_no_more() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let own = format!("server={}", std::process::id());
    let recorder = Recorder::start(&run, &["--interval", "20ms", "--process", &own]);
    assert_keeps(&recorder, DAC_READ_SEARCH | SYS_PTRACE);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));

    let run = dir.path().join("plain");
    let recorder = Recorder::start(&run, &["--interval", "20ms", "--probes", "cpu,ebpf_irq"]);
    assert_keeps(&recorder, DAC_READ_SEARCH);
}

/// The run directory may be the user's, and the recorder root's: it then keeps the right to write there.
#[test]
fn a_run_directory_of_another_user_is_finished() {
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
    let recorder = Recorder::start(&run, &["--interval", "20ms"]);
    assert_keeps(&recorder, DAC_OVERRIDE | DAC_READ_SEARCH | SYS_PTRACE);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(manifest::verify(&run).unwrap(), Vec::<String>::new());
    let probes = strings(&read(run.join("server/ticks.parquet")), "probe");
    assert!(probes.contains(&"cpu".to_owned()), "{probes:?}");
}
