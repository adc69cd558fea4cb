//! Tests `record` with the real binary on this host: stop, kill, a failing probe, 100 Hz, bad
//! input.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::prelude::*;
use loadprint_recording::journal::Frame;
use loadprint_recording::journal::Reader;
use loadprint_recording::table::read_meta;
use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;
use tempfile::tempdir;

/// Number of complete ticks in the journal.
fn journal_ticks(run: &Path) -> usize {
    let mut reader = Reader::open(&run.join("server/journal")).unwrap();
    let mut ticks = 0;
    while let Some(frame) = reader.next_frame().unwrap() {
        ticks += usize::from(matches!(frame, Frame::Tick(_)));
    }
    ticks
}

fn last_tick(table: &Path) -> Option<u32> {
    let ticks = column(table, "tick");
    ticks.iter().map(|tick| tick.parse().unwrap()).max()
}

/// But not under nohup(1).
#[test]
fn the_end_of_the_terminal_finishes_the_recording() {
    for disposition in ["--default-signal=HUP", "--ignore-signal=HUP"] {
        let dir = tempdir().unwrap();
        let run = dir.path().join("run");
        let record = collect("record --interval 20ms --probes cpu");
        let mut command = Command::new("env");
        command
            .arg(disposition)
            .arg(record.get_program())
            .args(record.get_args());
        let recorder = Recorder::launch(&mut command, &run);
        recorder.signal(Signal::HUP);
        if disposition.starts_with("--ignore") {
            let before = journal_ticks(&run);
            wait_for("further ticks", || journal_ticks(&run) > before + 5);
            recorder.stop();
        } else {
            assert!(recorder.wait().status.success());
        }
        assert_eq!(json(run.join("run.json"))["status"], "complete");
    }
}

#[test]
fn sigterm_finishes_the_recording() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let process = std::process::id();
    let words = format!("--interval 20ms --process server={process} --cpuset server=0");
    let recorder = Recorder::start(&run, &words);
    wait_for("five ticks", || journal_ticks(&run) >= 5);
    let before = journal_ticks(&run);
    recorder.stop();

    let server = run.join("server");
    assert!(!server.join("journal").exists() && !run.with_extension("pid").exists());
    assert_manifest(&run);
    let ticks = server.join("ticks.parquet");
    let meta = read_meta(&ticks).unwrap();
    assert_eq!(json!([meta["ended"], meta["torn_bytes"]]), json!(["signal", 0]));
    // The last tick is taken at the stop.
    assert!(meta["ticks"].as_u64().unwrap() as usize > before);
    let roles = column(server.join("process.parquet"), "role");
    assert!(roles.contains(&"server".to_owned()) && roles.contains(&"recorder".to_owned()));
    // Threads are read at the last tick although they are not due.
    assert_eq!(last_tick(&server.join("threads.parquet")), last_tick(&ticks));
    assert!(column(server.join("interrupts.parquet"), "cpus").contains(&"server".to_owned()));

    assert_eq!(json(run.join("run.json"))["status"], "complete");
    let fingerprint = json(server.join("fingerprint.json"));
    assert_eq!(fingerprint["boot_id"], meta["boot_id"]);
    assert_eq!(fingerprint["cpusets"]["server"], json!([0]));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    assert_eq!(fingerprint["recorder"]["cpus"], cpus.trim());
}

#[test]
fn ticks_on_request_are_all_that_were_asked_for() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let process = std::process::id();
    let words = format!("--on-request --interval 10ms --process server={process}");
    let recorder = Recorder::start(&run, &words);
    for asked in 2..5 {
        recorder.signal(Signal::USR1);
        wait_for("the tick", || journal_ticks(&run) >= asked);
    }
    recorder.stop();
    let ticks = run.join("server/ticks.parquet");
    let meta = read_meta(&ticks).unwrap();
    assert_eq!(json!([meta["ticks"], meta["missed"]]), json!([5, 0]));
    let mut of_threads = column(run.join("server/threads.parquet"), "tick");
    of_threads.sort();
    of_threads.dedup();
    assert_eq!(of_threads, ["0", "1", "2", "3", "4"]);
}

/// The options of two recordings of one recorder, before those that [`Recorder::start`] adds for the second.
fn two(first: &Path, second: &Path, options: &str) -> String {
    let (out, pid_file) = (first.display(), second.with_extension("pid"));
    let options = format!("--on-request {options}");
    format!(
        "{options} --out {out} --pid-file {} --and {options}",
        pid_file.display()
    )
}

#[test]
fn a_recorder_makes_several_recordings_each_with_its_own_ticks() {
    let dir = tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let recorder = Recorder::start(&second, &two(&first, &second, "--probes cpu,process"));
    let ticks = || (journal_ticks(&first), journal_ticks(&second));
    assert_eq!(ticks(), (1, 1));
    recorder.signal(Signal::USR1);
    wait_for("a tick of the first", || ticks() == (2, 1));
    for asked in 2..4 {
        let request = format!("kill -s RTMIN+1 {}", recorder.pid());
        assert!(
            Command::new("bash")
                .args(["-c", &request])
                .status()
                .unwrap()
                .success()
        );
        wait_for("a tick of the second", || ticks() == (2, asked));
    }
    recorder.stop();
    for (run, all) in [(&first, 3), (&second, 4)] {
        assert_manifest(run);
        assert_eq!(json(run.join("run.json"))["status"], "complete");
        let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
        assert_eq!(json!([meta["ticks"], meta["missed"]]), json!([all, 0]));
    }
    refused(
        "record --on-request --out a --and --out b",
        "--and: add --on-request to each recording",
    );
    refused(
        "probes --and --out b",
        "--and: only record has several recordings",
    );
    refused("record --on-request --out a --and --outt b", "--outt");
}

/// Loaded twice they would cost twice.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_programs_of_several_recordings_run_once() {
    let loaded = |recorder: &Recorder| -> BTreeSet<String> {
        let files = fs::read_dir(format!("/proc/{}/fdinfo", recorder.pid())).unwrap();
        let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap_or_default());
        let ids = texts.filter_map(|text| {
            let id = text.lines().find(|line| line.starts_with("prog_id:"));
            id.map(str::to_owned)
        });
        ids.collect()
    };
    let dir = tempdir().unwrap();
    let [alone, first, second] = ["alone", "first", "second"].map(|name| dir.path().join(name));
    let process = format!("--process load={}", std::process::id());
    let shared = format!("--without profile --with ebpf_syscalls {process}");
    let recorder = Recorder::start(&alone, &shared);
    let of_one = loaded(&recorder).len();
    recorder.stop();
    let recorder = Recorder::start(&second, &two(&first, &second, &shared));
    assert_eq!(loaded(&recorder).len(), of_one);
    recorder.stop();
}

#[test]
fn the_newest_sample_is_in_the_live_file_until_the_end() {
    let dir = tempdir().unwrap();
    let (run, live) = (dir.path().join("run"), dir.path().join("live.json"));
    let words = format!(
        "--interval 20ms --live-probes cpu,memory --live {}",
        live.display()
    );
    let recorder = Recorder::start(&run, &words);
    // It is replaced as a whole: what is read is always a document.
    let number = |sample: &Value| sample["monotonic_ns"].as_i64().unwrap();
    let first = json(&live);
    wait_for("a later tick", || number(&json(&live)) > number(&first));
    assert_eq!(fs::metadata(&live).unwrap().permissions().mode() & 0o777, 0o600);
    let last = json(&live);
    let probes: Vec<_> = last["probes"].as_object().unwrap().keys().collect();
    assert_eq!(probes, ["cpu", "memory"]);
    recorder.stop();
    assert!(!live.exists());
    // It is what the recording has.
    let samples = last["probes"]["cpu"]["rows"].as_array().unwrap();
    let all = samples.iter().find(|row| row["cpu"] == "all").unwrap();
    assert!(column(run.join("server/cpu.parquet"), "user").contains(&all["user"].to_string()));

    // A start that fails leaves what was there.
    fs::write(&live, "another program's").unwrap();
    for path in ["/nowhere/live.json", live.to_str().unwrap()] {
        refused(&format!("record --out {} --live {path}", run.display()), "");
    }
    assert_eq!(fs::read_to_string(&live).unwrap(), "another program's");
}

#[test]
fn a_killed_recorder_loses_no_tick_of_the_journal() {
    for round in 0..5 {
        let dir = tempdir().unwrap();
        let run = dir.path().join("run");
        let recorder = Recorder::start(&run, "--interval 2ms");
        // The time of the kill differs between rounds and is not aligned to the ticks.
        wait_for("some ticks", || journal_ticks(&run) > 3 + 17 * round);
        let seen = journal_ticks(&run);
        recorder.signal(Signal::KILL);
        assert!(!recorder.wait().status.success());
        let finish = format!("finish {}", run.display());
        succeed(&finish);
        let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
        let ticks = meta["ticks"].as_u64().unwrap() as usize;
        assert!(ticks >= seen);
        assert_eq!(meta["ended"], "torn");
        let cpus = column(run.join("server/cpu.parquet"), "cpu");
        assert_eq!(cpus.iter().filter(|cpu| *cpu == "all").count(), ticks);
        assert_eq!(succeed(&finish), "");
        assert_manifest(&run);
    }
}

/// Changes a file of the fake host in place: the recorder has it open.
fn overwrite(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(text.len() as u64).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
}

#[test]
fn a_probe_that_fails_does_not_end_the_recording() {
    let dir = tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/host/t0");
    let (proc, sys) = (dir.path().join("proc"), fixtures.join("sys"));
    copy(fixtures.join("proc"), &proc);
    fs::remove_dir_all(proc.join("pressure")).unwrap();
    let run = dir.path().join("run");
    let (proc_root, sys_root) = (proc.display(), sys.display());
    let words = format!("--proc-root {proc_root} --sys-root {sys_root} --interval 5ms");
    let recorder = Recorder::start(&run, &words);
    for (file, odd) in [
        (
            "diskstats",
            " 259 0 nvme0n1 12 oops\n 259 1 sdz 1 2 3 4 5 6 -7 8 9 10 11\n",
        ),
        ("meminfo", ""),
    ] {
        let whole = fs::read_to_string(proc.join(file)).unwrap();
        for text in [odd, &whole] {
            overwrite(&proc.join(file), text);
            let before = journal_ticks(&run);
            wait_for("ticks with this file", || journal_ticks(&run) >= before + 3);
        }
    }
    let messages = recorder.stop();

    let ticks = rows(run.join("server/ticks.parquet"), ["probe", "status", "reason"]);
    let of = |probe: &str, word: &str| {
        let is_wanted = |row: &usize| ticks[*row][0] == probe && ticks[*row][1] == word;
        (0..ticks.len()).filter(is_wanted).collect::<Vec<_>>()
    };
    let failed = of("memory", "failed");
    assert!(failed.len() >= 2, "{failed:?}");
    let message = &ticks[failed[1]][2];
    assert!(
        message.ends_with("proc/meminfo:1: MemTotal: the file has no such line"),
        "{message}"
    );
    // The probe continues when the file is repaired.
    assert!(of("memory", "ok").last() > failed.last());
    assert!(of("cpu", "failed").is_empty());
    // An odd line costs its row, an odd cell its value.
    assert!(of("disk", "failed").is_empty());
    let (whole, odd): (Vec<_>, Vec<_>) = of("disk", "ok")
        .into_iter()
        .partition(|row| ticks[*row][2].is_empty());
    assert!(odd.len() >= 2, "{odd:?}");
    let expected = "2 cells, 1 line (line 1: field: `oops` is not its value)";
    assert_eq!(ticks[odd[1]][2], format!("not read: {expected}"));
    let disks = rows(
        run.join("server/disk.parquet"),
        ["device", "write_merges", "write_sectors"],
    );
    let of_device = |name: &str| disks.iter().filter(|row| row[0] == name).collect::<Vec<_>>();
    assert_eq!(of_device("nvme0n1").len(), whole.len());
    assert_eq!(of_device("sdz").len(), odd.len());
    assert_eq!(of_device("sdz")[0][1..], ["6", ""]);
    // At the end one line says so.
    let line = messages
        .lines()
        .find(|line| line.contains("could not be read: "))
        .unwrap();
    assert!(line.contains("disk: ") && line.contains("memory: "), "{line}");
    // The first tick records that a probe is unavailable, with the fix.
    let [unavailable] = of("pressure", "unavailable")[..] else {
        panic!("{ticks:?}");
    };
    assert!(ticks[unavailable][2].contains("psi=1"));
}

#[test]
fn what_was_named_and_is_absent_is_a_warning() {
    let dir = tempdir().unwrap();
    let pid_file = dir.path().join("mysqld.pid");
    let cpus = dir.path().join("devices/system/cpu");
    fs::create_dir_all(&cpus).unwrap();
    fs::write(cpus.join("online"), "0-3\n").unwrap();
    let record = |run: &str, words: &str| {
        let out = dir.path().join(run);
        let (out, sys, pid_file) = (out.display(), dir.path().display(), pid_file.display());
        let output = collect(&format!(
            "record --out {out} --duration 100ms --interval 100ms --sys-root {sys} --process server=@{pid_file} {words}"
        ))
        .output()
        .unwrap();
        assert!(output.status.success());
        stderr(&output)
    };
    let process = format!(
        "--process server={}: no process in the recording",
        pid_file.display()
    );
    let named = record(
        "named",
        "--probes cpu,nvme,energy,process --cpuset server=0-3 --cpuset load=2,7,9",
    );
    for expected in [
        "warning: probe nvme is not recorded: ",
        "warning: probe energy is not recorded: ",
        &process,
        "warning: --cpuset load: CPU 7 is not online",
    ] {
        assert!(named.contains(expected), "{named}");
    }
    assert!(
        !named.contains("probe cpu") && !named.contains("--cpuset server"),
        "{named}"
    );
    // Of the standard set a host has what it has.
    let standard = record("standard", "--without mysql,ebpf");
    assert!(!standard.contains("is not recorded"), "{standard}");
    // A process that starts later is one of the recording.
    fs::write(&pid_file, std::process::id().to_string()).unwrap();
    assert!(!record("found", "--probes process").contains("no process"));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn ticks_at_100_hz_are_taken_or_counted_as_missed() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    succeed(&format!(
        "record --out {} --interval 10ms --duration 1s",
        run.display()
    ));
    let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
    let (ticks, missed) = (meta["ticks"].as_u64().unwrap(), meta["missed"].as_u64().unwrap());
    // A busy machine may miss any number of ticks, but all must be counted.
    assert_eq!(ticks + missed, 101);
    assert_eq!(meta["ended"], "duration");
}

#[test]
fn bad_input_is_one_line_and_status_two() {
    let dir = tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let quick = format!("record --out {dir}/run --duration 10ms --interval 5ms");
    succeed(&quick);
    fs::write(format!("{dir}/file"), "").unwrap();
    for (words, expected) in [
        (
            &*quick,
            "already contains a recording; choose another --out or --role",
        ),
        (&format!("record --out {dir}/file --duration 1s"), "file/server: "),
        (
            "record --out x --probes cpu,dsik",
            "unknown probe `dsik`; known probes: cpu, interrupts",
        ),
        ("record --out x --interval 0s", "between 1ms and 1h"),
        ("record --out x --process 4242", "ROLE=PID"),
        ("record --out x --role ../x", "a role is a directory name"),
        ("record --out x --cpuset server=3-1", "is not a CPU list"),
        ("record", "--out"),
        ("finish /nonexistent", "/nonexistent: not a run directory"),
        (&format!("finish {dir}"), "not a run directory"),
        ("fingerprint --cpuset server=x", "--cpuset"),
        ("canary --cpus 5000", "CPU 5000 does not exist"),
        ("canary --cpus 3-1", "is not a CPU list"),
        ("canary --label between", "between"),
        (
            "canary --out /proc/nowhere/canary.jsonl",
            "cannot append the result",
        ),
    ] {
        refused(words, expected);
    }
}

#[test]
fn probes_are_listed_with_status_and_reason() {
    let list = succeed("probes --format json --proc-root /nonexistent");
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let probe = |name: &str| list.iter().find(|probe| probe["name"] == name).unwrap();
    assert_eq!(probe("cpu")["status"], "unavailable");
    assert!(probe("cpu")["reason"].as_str().unwrap().contains("--proc-root"));
    assert_eq!(probe("threads")["status"], "off");
    assert_eq!(probe("disk")["columns"]["read_sectors"]["unit"], "sector");
    assert_eq!(succeed("probes").lines().count(), list.len());
}
