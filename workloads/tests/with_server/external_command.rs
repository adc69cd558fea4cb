//! Commands as external generators: this generator, the Go client, and programs that misbehave.

use std::path::Path;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::prelude::*;

const PREPARED: &str = "oltp_read_write --tables=2 --table-size=2000 --threads=2";

fn run(bench: &Bench, words: &str, more: &[&str]) -> (Output, PathBuf) {
    let out = bench.path("run");
    let mut command = bench.command(&format!("run command {words} --out={}", out.display()));
    (command.args(more).output().unwrap(), out)
}

fn error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn operations_of_the_output_agree_with_the_server() {
    let bench = Bench::prepared("command_output", PREPARED);
    let words = "--command=PROGRAM run oltp_point_select --defaults-file={defaults_file} --mysql-db={database} --tables=2 \
                 --table-size=2000 --threads={threads} --events=3000 --protocol=text";
    let (output, out) = run(
        &bench,
        "--threads=2 --time=600",
        &[
            &words.replace("PROGRAM", env!("CARGO_BIN_EXE_loadprint-load")),
            "--operations-regex=total number of events: +(?<operations>[0-9]+)",
            "--operation=point select",
        ],
    );
    assert!(output.status.success(), "{}", error(&output));
    let result = json(&out.join("load/result.json"));
    assert_eq!(
        (result["events"].as_u64(), result["operation"].as_str()),
        (Some(3000), Some("point select"))
    );
    assert_eq!(
        (result["generator"].as_str(), result["status"].as_str()),
        (Some("command"), Some("complete"))
    );
    assert!(result["queries"].is_null() && result["latency_ms"]["p95"].is_null());
    assert_eq!(json(&out.join("run.json"))["generator"], "command");
    assert!(result["details"]["sockets"]["after"]["tcp_time_wait"].is_u64());
    // Its 3000 statements, and a few dozen that read the server's settings.
    let questions = growth(&json(&out.join("load/server.json")), "Questions");
    assert!((3000..3200).contains(&questions), "{questions}");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_server_counts_the_operations_of_a_program_without_end() {
    let bench = Bench::prepared("command_questions", PREPARED);
    let words = "--command=PROGRAM run oltp_point_select --defaults-file={defaults_file} --mysql-db={database} --tables=2 \
                 --table-size=2000 --time=0";
    let (output, out) = run(
        &bench,
        "--time=2 --measure-begin-regex=tps: --operations-from=questions --grace=600",
        &[&words.replace("PROGRAM", env!("CARGO_BIN_EXE_loadprint-load"))],
    );
    assert!(output.status.success(), "{}", error(&output));
    let result = json(&out.join("load/result.json"));
    let questions = growth(&json(&out.join("load/server.json")), "Questions");
    assert_eq!(result["events"].as_u64(), Some(questions));
    assert!(questions > 0);
    assert_window(&out, &result);
}

#[test]
fn a_command_in_turns_warms_up_while_it_runs_and_has_no_figures() {
    let bench = Bench::new("command_turns");
    let words = "--shell=on --operations-from=questions --warmup-time=1 --paused";
    let (refused, _) = run(&bench, words, &["--time=5", "--command=exec sleep 1000"]);
    assert!(error(&refused).contains("give --time=0"), "{}", error(&refused));
    let out = bench.path("turns");
    let mut command = bench.command(&format!("run command {words} --time=0 --out={}", out.display()));
    command.arg("--command=exec sleep 1000");
    let command = InTurns::start(command, &out);
    command.signal("USR2", 2);
    command.signal("USR1", 3);
    // Longer than the warm-up, of which it is no part.
    std::thread::sleep(Duration::from_millis(1500));
    command.signal("USR2", 4);
    command.wait_for_measure();
    command.signal("USR2", 5);
    let ended = command.end();
    assert!(ended.status.success(), "{}", error(&ended));
    let [turns, phases] =
        ["turns.jsonl", "phases.jsonl"].map(|name| json_lines(&out.join("load").join(name)));

    let at = |line: &Value| line["monotonic_ns"].as_i64().unwrap();
    let events: Vec<_> = turns.iter().map(|turn| turn["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["paused", "resumed", "paused", "resumed", "boundary"]);
    assert!(turns.iter().all(|turn| turn["in_event"].is_null()));
    let [_, resumed, paused, again, _] = turns.iter().map(at).collect::<Vec<_>>()[..] else {
        panic!("{turns:?}")
    };
    let measured = phases.iter().find(|line| line["phase"] == "measure");
    let begin = measured.map(at).unwrap();
    assert!(
        begin - again + paused - resumed > 900_000_000,
        "{phases:?} {turns:?}"
    );
    let result = json(&out.join("load/result.json"));
    assert_eq!(result["status"], "complete");
    assert!(result["events"].is_null() && result["latency_ms"]["p95"].is_null());
}

/// Expects a window of at least the given time in the phases and in the result; a busy host sees
/// its end late.
fn assert_window(out: &Path, result: &Value) {
    let phases = json_lines(&out.join("load/phases.jsonl"));
    let moments = phases
        .iter()
        .filter(|line| line["phase"] == "measure")
        .map(|line| line["monotonic_ns"].as_i64().unwrap());
    let moments: Vec<i64> = moments.collect();
    let [begin, end] = moments[..] else {
        panic!("{phases:?}")
    };
    let reported = result["details"]["window_seconds"].as_f64().unwrap();
    let recorded = (end - begin) as f64 / 1e9;
    assert!(
        reported >= 1.9 && recorded >= 1.9,
        "{reported} s reported, {recorded} s recorded"
    );
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn programs_that_fail_or_hang_or_print_nothing_fail_the_run() {
    let bench = Bench::new("command_faults");
    for (words, more, part) in [
        (
            "--shell=on --time=600",
            "--command=echo 1 ops; echo cause >&2; exit 7",
            "exit status: 7: cause",
        ),
        (
            "--time=1 --grace=0.2",
            "--command=sleep 1000",
            "had not ended 1 s after its start",
        ),
        (
            "--time=600",
            "--command=true",
            "no line of the command's output contained a number of operations",
        ),
        ("--time=5", "--command=/no/such/program", "start /no/such/program"),
        ("--time=5", "--command=echo 'open", "missing closing quote"),
    ] {
        let (output, out) = run(&bench, words, &[more, "--operations-regex=([0-9]+) ops"]);
        assert_eq!(output.status.code(), Some(2), "{more}");
        assert!(error(&output).contains(part), "{more}: {}", error(&output));
        let status = json(&out.join("run.json"))["status"].clone();
        assert_eq!(status, "failed", "{more}");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_go_client_runs_with_and_without_its_pitfalls() {
    let bench = Bench::prepared("command_go", PREPARED);
    let program = bench.path("loadprint-go-lookup");
    if !has_go_client(&program) {
        return;
    }
    let lookups = |pitfall: &str| -> (Value, Value) {
        let command = format!(
            "--command={} -tables=2 -table-size=2000 {pitfall}",
            program.display()
        );
        let (output, out) = run(
            &bench,
            "--threads=2 --time=2 --operations-json=$.operations --seconds-json=$.seconds --grace=600",
            &[
                &command,
                "--interval-regex=lookups: ([0-9]+)",
                "--measure-begin-regex=^measure begins",
                "--measure-end-regex=^measure ends",
            ],
        );
        assert!(output.status.success(), "{}", error(&output));
        let files = (
            json(&out.join("load/result.json")),
            json(&out.join("load/server.json")),
        );
        std::fs::remove_dir_all(&out).unwrap();
        files
    };
    // Only server counters are compared with each other: a stall moves the client's window against
    // the server's.
    let (result, server) = lookups("");
    assert!(result["events"].as_u64() > Some(0), "{result}");
    assert!(result["seconds"].as_f64() >= Some(1.9), "{result}");
    assert!(growth(&server, "Com_select") > 0);
    assert_eq!(growth(&server, "Com_stmt_prepare"), 0, "values are in the text");
    let (_, server) = lookups("-interpolate-params=false -new-connection-per-query -gomaxprocs=1");
    let counts = ["Com_select", "Com_stmt_prepare", "Connections"].map(|name| growth(&server, name));
    let [selects, prepares, connections] = counts;
    // Except the lookups of both threads that are in progress at either end.
    assert!(prepares.abs_diff(selects) <= 4, "{counts:?}");
    // Within one statement the server first adds up the commands of its threads, then reads the
    // number of connections. The threads continue in between.
    assert!(
        2 * connections >= selects && connections <= 2 * selects,
        "{counts:?}"
    );
}
