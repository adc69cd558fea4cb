//! A server that hangs or sends nonsense: each call ends at its limit with one line that names the place, memory is bounded, and a
//! signal ends the generator.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::common::Bench;
use crate::common::hostile::Act;
use crate::common::hostile::EXECUTE;
use crate::common::hostile::Hostile;
use crate::common::hostile::Moment;
use crate::common::hostile::PREPARE;
use crate::common::hostile::query;
use crate::common::json;
use crate::common::only_line;
use crate::common::variable;

/// Seconds that a limit is set to. No healthy statement takes that long on a machine that these tests can run on.
const LIMIT: u64 = 20;
const RUN: &str = "run oltp_read_write --table-size=100 --threads=2 --time=600 --report-interval=0";

/// A generator in front of a server that misbehaves.
struct Case {
    name: String,
    server: Hostile,
    child: Child,
}

/// Starts the generator; `first` is the first connection that the server treats badly (0 reads counters, the others run events).
fn start(bench: &Bench, words: &str, first: usize, moment: Moment, act: Act) -> Case {
    let server = Hostile::start(&variable("LOADPRINT_TEST_SOCKET"), first, moment, act);
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-load"));
    let account = bench.connection().into_iter();
    let child = command
        .args(words.split_whitespace())
        .args(account.filter(|argument| !argument.starts_with("--mysql-socket=")))
        .arg(format!("--mysql-db={}", bench.database()))
        .args(server.address())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Case {
        name: format!("{words}: {act:?} at {moment:?} from connection {first} on"),
        server,
        child,
    }
}

impl Case {
    /// Waits until the server has misbehaved.
    fn acted(&mut self) {
        while !self.server.has_acted() {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{}: ended before the server did anything",
                self.name
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end, which comes far before this deadline.
    fn end(mut self) -> (String, Output) {
        let deadline = Instant::now() + Duration::from_secs(600);
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                panic!("{}: still runs after 600 s", self.name);
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(self.server.has_acted(), "{}: nothing happened", self.name);
        (self.name, self.child.wait_with_output().unwrap())
    }

    /// Expects exit status 2 and one line with these parts.
    fn refused(self, parts: &[&str]) {
        let port = self.server.port();
        let (name, output) = self.end();
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {line}");
        let line = only_line(&output);
        for part in parts.iter().chain(&[format!("127.0.0.1:{port}").as_str()]) {
            assert!(line.contains(part), "{name}: `{part}` is not in: {line}");
        }
    }
}

/// Runs cases side by side, as each waits for its limit.
fn all_refused(cases: Vec<(Case, Vec<String>)>) {
    for (case, parts) in cases {
        case.refused(&parts.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

fn prepared(bench: &Bench) {
    bench.succeed("prepare oltp_read_write --table-size=100");
}

#[test]
fn a_login_that_does_not_end_is_given_up() {
    let bench = Bench::new("hostile_login");
    prepared(&bench);
    let mut cases = Vec::new();
    for (moment, act) in [
        (Moment::Connected, Act::Silence),
        (Moment::Connected, Act::Drip),
        (Moment::Greeted, Act::Silence),
        (Moment::Greeted, Act::Drip),
    ] {
        for (first, words) in [
            (0, RUN.to_owned()),
            (1, RUN.to_owned()),
            (0, "prepare oltp_insert".to_owned()),
            (0, "cleanup oltp_insert".to_owned()),
        ] {
            let words = format!("{words} --thread-init-timeout={LIMIT}");
            cases.push((
                start(&bench, &words, first, moment, act),
                vec!["--thread-init-timeout".to_owned()],
            ));
        }
    }
    all_refused(cases);
}

#[test]
fn a_statement_without_an_answer_is_given_up_and_named() {
    let bench = Bench::new("hostile_statement");
    prepared(&bench);
    let silent = |verb: &str, first: usize, moment, act| {
        let words = format!("{verb} --mysql-read-timeout={LIMIT}");
        start(&bench, &words, first, moment, act)
    };
    let limit = format!("for {LIMIT} s (--mysql-read-timeout)");
    let mut cases = Vec::new();
    // None of them leaves a row locked, for which another case would wait.
    for (workload, protocol, moment, place) in [
        (
            "oltp_read_only",
            "text",
            query("SELECT c FROM"),
            "`SELECT c FROM sbtest1",
        ),
        ("oltp_read_only", "text", query("COMMIT"), "`COMMIT`"),
        (
            "oltp_update_non_index",
            "emulated",
            query("UPDATE"),
            "`UPDATE sbtest1",
        ),
        (
            "oltp_read_only",
            "ps",
            Moment::Command(Some(PREPARE), ""),
            "setting up its session",
        ),
        (
            "oltp_point_select",
            "ps",
            Moment::Command(Some(EXECUTE), ""),
            "`SELECT c FROM sbtest1",
        ),
    ] {
        let words = format!(
            "run {workload} --table-size=100 --threads=2 --time=600 --report-interval=0 --protocol={protocol}"
        );
        for act in [Act::Silence, Act::Cut(3), Act::Drip] {
            cases.push((
                silent(&words, 1, moment, act),
                vec![limit.clone(), place.to_owned()],
            ));
        }
    }
    // The connection that reads counters, and those of other verbs.
    for (words, text) in [
        (RUN, "SHOW GLOBAL VARIABLES"),
        ("warmup oltp_read_write --table-size=100", "SELECT AVG(id)"),
        ("check oltp_read_write --table-size=100", "SELECT"),
    ] {
        cases.push((
            silent(words, 0, query(text), Act::Silence),
            vec![limit.clone(), format!("`{text}")],
        ));
    }
    all_refused(cases);
}

#[test]
fn threads_that_do_not_become_ready_end_the_run() {
    let bench = Bench::new("hostile_assembly");
    prepared(&bench);
    let words = format!("{RUN} --mysql-read-timeout=0 --thread-init-timeout={LIMIT}");
    let moment = Moment::Command(Some(PREPARE), "SELECT");
    start(&bench, &words, 1, moment, Act::Silence).refused(&[
        "0 of 2 threads were connected and prepared",
        "--thread-init-timeout",
    ]);
}

#[test]
fn what_no_server_sends_is_refused_with_bounded_memory() {
    let bench = Bench::new("hostile_replies");
    prepared(&bench);
    let words = format!("{RUN} --mysql-read-timeout=300");
    // The library takes some of the malformed packets for an answer; the server answers nothing after them.
    let short = format!("{RUN} --mysql-read-timeout={LIMIT}");
    let variables = query("SHOW GLOBAL VARIABLES");
    let cases = [
        (words.as_str(), 0, variables, Act::Rows, "1 GiB"),
        // The library keeps descriptions of columns up to the largest packet.
        (&words, 0, variables, Act::Columns, "error 20"),
        (&words, 0, variables, Act::ManyColumns(1 << 27), "error 2008"),
        (&short, 0, variables, Act::ManyColumns(1 << 60), "error 20"),
        (&short, 0, variables, Act::Packet(b"\xff"), "error 20"),
        (&short, 0, variables, Act::Packet(b"\x00\xfe\x01"), "error 20"),
        (
            &short,
            1,
            Moment::Command(Some(PREPARE), ""),
            Act::Packet(b"\x00\x01"),
            // Either limit may come first.
            " s",
        ),
    ];
    // One after the other: each of the endless ones uses a gigabyte.
    for (words, first, moment, act, part) in cases {
        start(&bench, words, first, moment, act).refused(&[part]);
    }
}

#[test]
fn a_signal_ends_a_generator_whose_server_is_silent() {
    let bench = Bench::new("hostile_signal");
    prepared(&bench);
    let mut cases = Vec::new();
    for (number, (first, moment)) in [
        (0, Moment::Connected),
        (0, Moment::Greeted),
        (0, query("SHOW GLOBAL VARIABLES")),
        (1, Moment::Greeted),
        (1, Moment::Command(Some(PREPARE), "")),
        (1, Moment::Command(Some(EXECUTE), "")),
    ]
    .into_iter()
    .enumerate()
    {
        let run = bench.path(&format!("run-{number}"));
        let words = format!(
            "{RUN} --mysql-read-timeout=0 --thread-init-timeout=3600 --forced-shutdown=off --out={}",
            run.display()
        );
        let measured = matches!(moment, Moment::Command(Some(EXECUTE), _)).then_some(run);
        cases.push((start(&bench, &words, first, moment, Act::Silence), measured));
    }
    for (case, _) in &mut cases {
        case.acted();
        case.terminate();
    }
    for (case, measured) in cases {
        let (name, output) = case.end();
        let line = only_line(&output);
        assert_eq!(output.status.code(), Some(143), "{name}: {line}");
        assert!(line.contains("interrupted by signal 15"), "{name}: {line}");
        if let Some(run) = measured {
            let result = json(&run.join("load/result.json"));
            assert_eq!(result["status"], "failed", "{name}");
            let phases = fs::read_to_string(run.join("load/phases.jsonl")).unwrap();
            assert!(phases.contains("measure"), "{name}: {phases}");
        }
    }
    // The other verbs keep the system's way with signals.
    let words = "prepare oltp_insert --tables=3 --mysql-read-timeout=0";
    let mut case = start(&bench, words, 1, Moment::Greeted, Act::Silence);
    case.acted();
    case.terminate();
    assert_eq!(case.end().1.status.signal(), Some(15));
}

#[test]
fn events_that_do_not_end_are_cut_off_after_the_time() {
    let bench = Bench::new("hostile_shutdown");
    prepared(&bench);
    let words = "run oltp_point_select --table-size=100 --threads=2 --time=1 --report-interval=0 --mysql-read-timeout=0 \
                 --forced-shutdown=1";
    let moment = Moment::Command(Some(EXECUTE), "");
    let (name, output) = start(&bench, words, 1, moment, Act::Silence).end();
    let line = only_line(&output);
    assert_eq!(output.status.code(), Some(2), "{name}: {line}");
    assert!(line.contains("did not end their event"), "{name}: {line}");
}
