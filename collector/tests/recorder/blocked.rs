//! Tests that a process whose files in `/proc` block their reader costs its own rows only. FIFOs in a
//! copy of `/proc` take the place of a mapping whose file system does not answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use crate::hang::Hang;
use crate::prelude::*;
use loadprint_recording::table::read_meta;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;
use rustix::process::Signal;
use tempfile::TempDir;
use tempfile::tempdir;

/// A copy of a host, in which reading `file` blocks; a run directory; and the options for both.
fn host(file: &str) -> (TempDir, PathBuf, String) {
    let dir = tempdir().unwrap();
    let host = dir.path().join("host");
    copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/host/t0"),
        &host,
    );
    let blocked = host.join("proc").join(file);
    // Files of the kernel that the fixture does not have are added.
    drop(fs::remove_file(&blocked));
    mknodat(CWD, &blocked, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let run = dir.path().join("run");
    let host = host.display();
    let words = format!("--proc-root {host}/proc --sys-root {host}/sys --interval 50ms");
    (dir, run, words)
}

/// Waits for the end, which must come soon, and returns the messages.
fn ended(mut recorder: Recorder) -> String {
    let started = Instant::now();
    while !recorder.has_ended() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the recorder does not end"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

/// The outcomes of each probe in all ticks, without duplicates.
fn outcomes(run: &Path) -> BTreeMap<String, Vec<String>> {
    let mut outcomes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for [probe, status] in rows(run.join("server/ticks.parquet"), ["probe", "status"]) {
        outcomes.entry(probe).or_default().push(status);
    }
    outcomes.values_mut().for_each(Vec::dedup);
    outcomes
}

#[test]
fn the_duration_ends_a_recording_whose_reads_hang() {
    for (file, probe) in [
        ("4242/stat", "process"),
        ("4242/task/4250/status", "threads"),
        ("4242/net/snmp", "sockets"),
    ] {
        let (_dir, run, words) = host(file);
        let words = format!(
            "record {words} --duration 500ms --probes cpu,process,threads,sockets --process server=4242"
        );
        let recorder = Recorder(Some(collect(&words).arg("--out").arg(&run).spawn().unwrap()));
        let messages = ended(recorder);
        assert_manifest(&run);
        for (name, statuses) in outcomes(&run) {
            // On a busy machine others may take longer than a tick waits.
            let is_as_expected = match name == probe {
                true => statuses == ["skipped"],
                false => statuses.iter().any(|status| status == "ok"),
            };
            assert!(is_as_expected, "{file}: {name} {statuses:?}");
        }
        let expected =
            format!("could not be read: {probe}: 1 tick failed ({probe}: a read has not finished after");
        assert!(messages.contains(&expected), "{messages}");
    }
}

/// A search by name reads the names of all processes, also at the start.
#[test]
fn signals_act_while_a_search_by_name_hangs() {
    let (_dir, run, words) = host("777/comm");
    let words = format!("{words} --probes cpu,process --process server=mysqld");
    let recorder = Recorder::start(&run, &words);
    recorder.signal(Signal::USR1);
    recorder.signal(Signal::TERM);
    ended(recorder);
    let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
    assert_eq!(meta["ended"], "signal");
    assert_eq!(outcomes(&run)["cpu"], ["ok"]);
    assert!(json(run.join("server/fingerprint.json")).is_object());
}

/// A process in execve(2) that closes a file of fuse(4) blocks the readers of most of its files.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_process_that_hangs_in_execve_costs_its_own_rows() {
    let dir = tempdir().unwrap();
    let Some(hang) = Hang::start(dir.path()) else {
        return;
    };
    let (run, pid) = (dir.path().join("run"), &hang.pid);
    let words =
        format!("record --interval 50ms --duration 500ms --probes cpu,process --process server={pid}");
    let recorder = Recorder(Some(collect(&words).arg("--out").arg(&run).spawn().unwrap()));
    let summary = ended(recorder);
    assert!(summary.contains("full duration"), "{summary}");
    assert_manifest(&run);
    assert!(outcomes(&run)["cpu"].iter().any(|status| status == "ok"));
    assert_eq!(outcomes(&run)["process"], ["skipped"]);
}
