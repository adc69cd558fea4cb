//! Runs the generators on programs that print recorded transcripts, and compares `result.json`, the
//! phases and the sums of the series.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::driver::Driver;
use crate::driver::dry_run::DryRun;
use crate::options::COMMON;
use crate::recording::Recording;
use crate::registry;
use crate::server::Server;
use program::RunMonitor;
use serde_json::Value as Json;
use serde_json::json;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/external");

/// Writes a program that prints a transcript, and for sysbench its version and options.
fn program(path: &Path, transcript: &str, version: &str, options: &str) -> String {
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in\n--version) echo 'sysbench {version}' ;;\n--help) echo '  --rand-type=X\n{options}' ;;\n\
         *help) ;;\n*) cat {FIXTURES}/{transcript} ;;\nesac\n"
    );
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn run(workload: &str, given: &[(&str, &str)], start: impl Fn(&Job<'_>) -> Result<Option<Program>>) -> Json {
    let workload = registry::find(workload).unwrap();
    let descriptor = workload.descriptor();
    let own = descriptor.options.iter().copied();
    let tables: Vec<&[OptionSpec]> = own.chain([COMMON]).collect();
    let values = Values::defaults(&tables, given);
    let account = Account::from_options(&values.read().unwrap()).unwrap();
    let output = Output::new(true);
    let job = Job {
        workload,
        values: &values,
        account: &account,
        threads: 2,
        seed: 7,
        output: &output,
    };
    let dir = tempfile::tempdir().unwrap();
    let server = Server::read(DryRun::default().connect().unwrap()).unwrap();
    let mut monitor = RunMonitor::new(server, &output);
    monitor.recording = Some(Recording::create(dir.path(), descriptor.types).unwrap());
    let started = start(&job).unwrap().unwrap();
    let outcome = started.run(&mut monitor).unwrap();
    let phases = fs::read_to_string(dir.path().join("load/phases.jsonl")).unwrap();
    let phase = |line: &str| {
        let line: Json = serde_json::from_str(line).unwrap();
        format!(
            "{} {}",
            line["phase"].as_str().unwrap(),
            line["event"].as_str().unwrap()
        )
    };
    let mut series = BTreeMap::new();
    for (name, count) in outcome.series.iter().flat_map(|row| &row.counts) {
        *series.entry(*name).or_insert(0) += count;
    }
    let about = json!({"workload": descriptor.name});
    json!({
        "result": outcome.to_json(&about, outcome.failure.as_deref()),
        "phases": phases.lines().map(phase).collect::<Vec<_>>(),
        "series": series,
        "values_of_histogram": outcome.histogram.len(),
    })
}

fn assert_golden(name: &str, json: &Json) {
    let path = format!("{FIXTURES}/{name}.json");
    let text = format!("{json:#}\n");
    if std::env::var_os("LOADPRINT_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{path}");
}

#[test]
fn transcripts_of_sysbench_give_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sysbench");
    for (name, version, options) in [
        ("sysbench-1.0.20-checkpoint", "1.0.20", ""),
        ("sysbench-1.1.0-warmup", "1.1.0", "  --warmup-time=N"),
    ] {
        let program = program(&path, &format!("{name}.txt"), version, options);
        let given = [
            ("sysbench-path", program.as_str()),
            ("warmup-time", "2"),
            ("time", "4"),
            ("histogram", "on"),
        ];
        let json = run("oltp_read_write", &given, |job| {
            sysbench::Sysbench.start(Verb::Run, job)
        });
        assert_golden(name, &json);
    }
}

#[test]
fn transcripts_of_hammerdb_give_the_results() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    fs::write(dir.path().join("bin/tclsh9.0"), "").unwrap();
    for name in ["hammerdb-4.9-run", "hammerdb-6.0-run"] {
        program(&dir.path().join("hammerdbcli"), &format!("{name}.txt"), "", "");
        let home = || Some(OsString::from(dir.path()));
        let mut json = run("tproc_c", &[("time", "60")], |job| {
            hammerdb::start(home(), Verb::Run, job)
        });
        // A rate times the time between two lines, which depends on the machine here.
        json["series"]["commits"] = Json::Null;
        assert_golden(name, &json);
    }
}

#[test]
fn marks_of_a_command_limit_its_window() {
    let script = "echo 5 ops; echo go; echo 7 ops; echo 8 ops; echo stop; echo 9 ops";
    let given = [
        ("command", script),
        ("shell", "on"),
        ("measure-begin-regex", "^go"),
        ("measure-end-regex", "^stop"),
        ("operations-from", "intervals"),
        ("interval-regex", "([0-9]+) ops"),
    ];
    let json = run("command", &given, |job| CommandWorkload.start(Verb::Run, job));
    assert_eq!(json["result"]["events"], 15);
    assert_eq!(
        json["phases"],
        json!(["warmup begin", "warmup end", "measure begin", "measure end"])
    );
}
