//! Tests `record` with the real binary on this host: stop, kill, a failing probe, 100 Hz, bad
//! input.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::collect;
use crate::common::read;
use crate::common::stderr;
use crate::common::strings;
use crate::common::ticks_of;
use crate::common::wait_for;
use loadprint_recording::journal::Frame;
use loadprint_recording::journal::Reader;
use loadprint_recording::table::read_meta;
use tempfile::tempdir;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// Number of complete ticks in the journal.
fn journal_ticks(run: &Path) -> usize {
    let mut reader = Reader::open(&run.join("server/journal")).unwrap();
    let mut ticks = 0;
    while let Some(frame) = reader.next_frame().unwrap() {
        ticks += usize::from(matches!(frame, Frame::Tick(_)));
    }
    ticks
}

#[test]
fn sigterm_finishes_the_recording() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let this_process = format!("server={}", std::process::id());
    let recorder = Recorder::start(
        &run,
        &[
            "--interval",
            "20ms",
            "--process",
            &this_process,
            "--cpuset",
            "server=0",
        ],
    );
    wait_for("five ticks", || journal_ticks(&run) >= 5);
    let before = journal_ticks(&run);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));

    let server = run.join("server");
    assert!(!server.join("journal").exists() && !run.with_extension("pid").exists());
    assert_manifest(&run);
    let meta = read_meta(&server.join("ticks.parquet")).unwrap();
    assert_eq!(
        (meta["ended"].as_str(), meta["torn_bytes"].as_u64()),
        (Some("signal"), Some(0))
    );
    assert!(
        meta["ticks"].as_u64().unwrap() as usize > before,
        "the last tick is taken at the stop"
    );
    let roles = strings(&read(server.join("process.parquet")), "role");
    assert!(roles.contains(&"server".to_owned()) && roles.contains(&"recorder".to_owned()));
    // Threads are read at the last tick although they are not due.
    let threads = ticks_of(&read(server.join("threads.parquet")));
    let ticks = ticks_of(&read(server.join("ticks.parquet")));
    assert_eq!(threads.iter().max(), ticks.iter().max());
    assert!(strings(&read(server.join("interrupts.parquet")), "cpus").contains(&"server".to_owned()));

    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(run.join(name)).unwrap()).unwrap()
    };
    assert_eq!(json("run.json")["status"], "complete");
    let fingerprint = json("server/fingerprint.json");
    assert_eq!(fingerprint["boot_id"], meta["boot_id"]);
    assert_eq!(fingerprint["cpusets"]["server"], serde_json::json!([0]));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    assert_eq!(fingerprint["recorder"]["cpus"], cpus.trim());
}

#[test]
fn the_newest_sample_is_in_the_live_file_until_the_end() {
    let dir = tempdir().unwrap();
    let (run, live) = (dir.path().join("run"), dir.path().join("live.json"));
    let options = ["--interval", "20ms", "--live-probes", "cpu,memory", "--live"];
    let recorder = Recorder::start(&run, &[&options[..], &[live.to_str().unwrap()]].concat());
    // It is replaced as a whole: what is read is always a document.
    let sample = || -> serde_json::Value { serde_json::from_slice(&fs::read(&live).unwrap()).unwrap() };
    let number = |sample: &serde_json::Value| sample["monotonic_ns"].as_i64().unwrap();
    let first = sample();
    wait_for("a later tick", || number(&sample()) > number(&first));
    assert_eq!(fs::metadata(&live).unwrap().permissions().mode() & 0o777, 0o600);
    let last = sample();
    let probes: Vec<_> = last["probes"].as_object().unwrap().keys().collect();
    assert_eq!(probes, ["cpu", "memory"]);
    recorder.signal(TERM);
    assert!(recorder.wait().status.success());
    assert!(!live.exists());
    // It is what the recording has.
    let cpu = read(run.join("server/cpu.parquet"));
    let user = cpu.column_by_name("user").unwrap();
    let user = user.as_primitive::<UInt64Type>();
    let rows = last["probes"]["cpu"]["rows"].as_array().unwrap();
    let all = rows.iter().find(|row| row["cpu"] == "all").unwrap();
    assert!(user.iter().any(|value| value == all["user"].as_u64()));

    // A start that fails leaves what was there.
    fs::write(&live, "another program's").unwrap();
    for path in ["/nowhere/live.json", live.to_str().unwrap()] {
        let words = ["record", "--out", run.to_str().unwrap(), "--live", path];
        assert_eq!(collect(&words).output().unwrap().status.code(), Some(2));
    }
    assert_eq!(fs::read_to_string(&live).unwrap(), "another program's");
}

#[test]
fn a_killed_recorder_loses_no_tick_of_the_journal() {
    for round in 0..5 {
        let dir = tempdir().unwrap();
        let run = dir.path().join("run");
        let recorder = Recorder::start(&run, &["--interval", "2ms"]);
        // The time of the kill differs between rounds and is not aligned to the ticks.
        wait_for("some ticks", || journal_ticks(&run) > 3 + 17 * round);
        let seen = journal_ticks(&run);
        recorder.signal(KILL);
        assert!(!recorder.wait().status.success());
        let output = collect(&["finish", run.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
        assert!(meta["ticks"].as_u64().unwrap() as usize >= seen);
        assert_eq!(meta["ended"], "torn");
        let cpu = read(run.join("server/cpu.parquet"));
        let rows = strings(&cpu, "cpu").iter().filter(|cpu| *cpu == "all").count();
        assert_eq!(rows, meta["ticks"].as_u64().unwrap() as usize);
        let again = collect(&["finish", run.to_str().unwrap()]).output().unwrap();
        assert!(again.status.success() && again.stdout.is_empty());
        assert_manifest(&run);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Overwrites the start of a file with one system call: the recorder, which keeps it open, must
/// never read it empty.
fn overwrite(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
}

#[test]
fn a_probe_that_fails_does_not_end_the_recording() {
    let dir = tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/host/t0");
    copy(&fixtures.join("proc"), &dir.path().join("proc"));
    fs::remove_dir_all(dir.path().join("proc/pressure")).unwrap();
    let (proc, sys) = (dir.path().join("proc"), fixtures.join("sys"));
    let run = dir.path().join("run");
    let roots = [
        "--proc-root",
        proc.to_str().unwrap(),
        "--sys-root",
        sys.to_str().unwrap(),
    ];
    let recorder = Recorder::start(&run, &[&roots[..], &["--interval", "5ms"]].concat());
    overwrite(&proc.join("diskstats"), " 259 0 nvme0n1 12 oops\n");
    let broken = journal_ticks(&run);
    wait_for("ticks with a broken file", || journal_ticks(&run) >= broken + 3);
    let whole = fs::read_to_string(fixtures.join("proc/diskstats")).unwrap();
    overwrite(&proc.join("diskstats"), &whole);
    let repaired = journal_ticks(&run);
    wait_for("ticks with a repaired file", || {
        journal_ticks(&run) >= repaired + 3
    });
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));

    let ticks = read(run.join("server/ticks.parquet"));
    let (probes, status, reason) = (
        strings(&ticks, "probe"),
        strings(&ticks, "status"),
        strings(&ticks, "reason"),
    );
    let of = |probe: &str, word: &str| {
        (0..probes.len())
            .filter(|&row| probes[row] == probe && status[row] == word)
            .collect::<Vec<_>>()
    };
    let failed = of("disk", "failed");
    assert!(failed.len() >= 2, "{failed:?}");
    let message = &reason[failed[1]];
    assert!(
        message.ends_with("proc/diskstats:1: field: `oops` is not a number"),
        "{message}"
    );
    assert!(
        of("disk", "ok").last() > failed.last(),
        "the probe continues when the file is repaired"
    );
    assert!(of("cpu", "failed").is_empty());
    // The first tick records that a probe is unavailable, with the fix.
    assert_eq!(of("pressure", "unavailable").len(), 1);
    assert!(reason[of("pressure", "unavailable")[0]].contains("psi=1"));
    let disks = strings(&read(run.join("server/disk.parquet")), "device");
    let rows = disks.iter().filter(|device| *device == "nvme0n1").count();
    assert_eq!(rows, of("disk", "ok").len(), "a failed tick has no row");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn ticks_at_100_hz_are_taken_or_counted_as_missed() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let output = collect(&[
        "record",
        "--out",
        run.to_str().unwrap(),
        "--interval",
        "10ms",
        "--duration",
        "1s",
    ])
    .output()
    .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
    let (ticks, missed) = (meta["ticks"].as_u64().unwrap(), meta["missed"].as_u64().unwrap());
    // A busy machine may miss any number of ticks, but all must be counted.
    assert_eq!(ticks + missed, 101);
    assert_eq!(meta["ended"], "duration");
}

#[test]
fn bad_input_is_one_line_and_status_two() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let run = run.to_str().unwrap();
    let quick = ["record", "--out", run, "--duration", "10ms", "--interval", "5ms"];
    assert!(collect(&quick).status().unwrap().success());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, expected) in [
        (
            &quick[..],
            "already contains a recording; choose another --out or --role",
        ),
        (&["record", "--out", file, "--duration", "1s"], "file/server: "),
        (
            &["record", "--out", "x", "--probes", "cpu,dsik"],
            "unknown probe `dsik`; known probes: cpu, interrupts",
        ),
        (
            &["record", "--out", "x", "--interval", "0s"],
            "between 1ms and 1h",
        ),
        (&["record", "--out", "x", "--process", "4242"], "ROLE=PID"),
        (
            &["record", "--out", "x", "--role", "../x"],
            "a role is a directory name",
        ),
        (
            &["record", "--out", "x", "--cpuset", "server=3-1"],
            "is not a CPU list",
        ),
        (&["record"], "--out"),
        (&["finish", "/nonexistent"], "/nonexistent: not a run directory"),
        (&["finish", dir.path().to_str().unwrap()], "not a run directory"),
    ] {
        let output = collect(arguments).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(
            message.starts_with("loadprint-collect: ") && message.contains(expected),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn probes_are_listed_with_status_and_reason() {
    let output = collect(&["probes", "--format", "json", "--proc-root", "/nonexistent"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let probe = |name: &str| list.iter().find(|probe| probe["name"] == name).unwrap();
    assert_eq!(probe("cpu")["status"], "unavailable");
    assert!(probe("cpu")["reason"].as_str().unwrap().contains("--proc-root"));
    assert_eq!(probe("threads")["status"], "off");
    assert_eq!(probe("disk")["columns"]["read_sectors"]["unit"], "sector");
    let text = collect(&["probes"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), list.len());
}
