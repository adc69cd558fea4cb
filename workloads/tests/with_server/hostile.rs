//! Tests with a server that hangs or sends malformed packets: each call ends at its limit with one
//! line that names the place, memory is bounded, and a signal ends the generator.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use crate::common::hostile::Act;
use crate::common::hostile::EXECUTE;
use crate::common::hostile::Hostile;
use crate::common::hostile::Moment;
use crate::common::hostile::PREPARE;
use crate::common::hostile::query;
use crate::prelude::*;

/// Seconds for which the option under test is set. A healthy call takes longer than the first only
/// where the machine stalls: cases that fail with it run again with the second.
const LIMITS: [u64; 2] = [2, 20];
const PREPARED: &str = "oltp_read_write --table-size=100";
const RUN: &str = "run oltp_read_write --table-size=100 --threads=2 --time=600 --report-interval=0";

/// The generator with these arguments on this server.
pub fn through(server: &Hostile, bench: &Bench, words: &str) -> Command {
    let account = bench.connection().into_iter();
    let mut command = generator(words);
    command
        .args(account.filter(|argument| !argument.starts_with("--mysql-socket=")))
        .arg(format!("--mysql-db={}", bench.database()))
        .args(server.address());
    command
}

/// A call of the generator, how its server misbehaves, and what the error message must contain.
/// `LIMIT` in `words` and `parts` stands for the seconds of [`LIMITS`].
struct Case {
    words: String,
    /// The first connection that the server treats badly: 0 reads counters, the others run events.
    first: usize,
    moment: Moment,
    act: Act,
    parts: Vec<String>,
}

impl Case {
    fn new(words: impl Into<String>, first: usize, moment: Moment, act: Act, parts: &[&str]) -> Self {
        Self {
            words: words.into(),
            first,
            moment,
            act,
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
        }
    }

    fn start(&self, bench: &Bench, limit: u64) -> Started {
        let words = with_limit(&self.words, limit);
        let server = Hostile::start(
            &variable("LOADPRINT_TEST_SOCKET"),
            self.first,
            self.moment,
            self.act,
        );
        let child = through(&server, bench, &words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let name = format!(
            "{words}: {:?} at {:?} from connection {} on",
            self.act, self.moment, self.first
        );
        Started { name, server, child }
    }

    /// The reason if the generator did not fail as it should.
    fn judge(&self, started: Started, limit: u64) -> Result<(), String> {
        let address = format!("127.0.0.1:{}", started.server.port());
        let (name, has_acted, output) = started.end();
        let text = String::from_utf8_lossy(&output.stderr);
        let parts = self.parts.iter().map(|part| with_limit(part, limit));
        let missing: Vec<String> = parts
            .chain([address])
            .filter(|part| !text.contains(part))
            .collect();
        let is_refusal = output.status.code() == Some(2) && text.lines().count() == 1;
        match is_refusal && missing.is_empty() && has_acted {
            true => Ok(()),
            false => Err(format!("{name}: {}, without {missing:?}: {text}", output.status)),
        }
    }
}

fn with_limit(text: &str, limit: u64) -> String {
    text.replace("LIMIT", &limit.to_string())
}

/// Runs all cases at the same time, because each waits for its limit, and expects exit status 2 and
/// one line with the address and the parts.
fn all_refused(bench: &Bench, cases: Vec<Case>) {
    let mut cases = cases;
    let mut failures = Vec::new();
    for limit in LIMITS {
        let started: Vec<(Case, Started)> = cases
            .into_iter()
            .map(|case| {
                let started = case.start(bench, limit);
                (case, started)
            })
            .collect();
        (cases, failures) = started
            .into_iter()
            .filter_map(|(case, started)| {
                let failure = case.judge(started, limit).err()?;
                Some((case, failure))
            })
            .unzip();
        if cases.is_empty() {
            return;
        }
    }
    panic!("{}", failures.join("\n"));
}

/// A generator in front of a server that misbehaves.
struct Started {
    name: String,
    server: Hostile,
    child: Child,
}

impl Started {
    /// Waits until the server has misbehaved, then ends the generator.
    fn terminate_after_act(&mut self) {
        wait_until(&self.name, || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}: ended before the server acted", self.name);
            self.server.has_acted()
        });
        signal(&self.child, "TERM");
    }

    /// The name, whether the server has misbehaved, and what the generator printed.
    fn end(self) -> (String, bool, Output) {
        let output = wait_for_end(self.child, &self.name);
        (self.name, self.server.has_acted(), output)
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_login_without_end_is_given_up() {
    let bench = Bench::prepared("hostile_login", PREPARED);
    let mut cases = Vec::new();
    for moment in [Moment::Connected, Moment::Greeted] {
        for act in [Act::Silence, Act::Drip] {
            for (first, words) in [
                (0, RUN),
                (1, RUN),
                (0, "prepare oltp_insert"),
                (0, "cleanup oltp_insert"),
            ] {
                let words = format!("{words} --thread-init-timeout=LIMIT");
                cases.push(Case::new(words, first, moment, act, &["--thread-init-timeout"]));
            }
        }
    }
    all_refused(&bench, cases);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_statement_without_an_answer_is_given_up_and_named() {
    let bench = Bench::prepared("hostile_statement", PREPARED);
    let case = |words: &str, first, moment, act, place: &str| {
        let words = format!("{words} --mysql-read-timeout=LIMIT");
        let limit = "for LIMIT s (--mysql-read-timeout)";
        Case::new(words, first, moment, act, &[limit, place])
    };
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
            "preparing its session",
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
            cases.push(case(&words, 1, moment, act, place));
        }
    }
    // The connection that reads counters, and those of other verbs.
    for (words, text) in [
        (RUN, "SHOW GLOBAL VARIABLES"),
        ("warmup oltp_read_write --table-size=100", "SELECT AVG(id)"),
        ("check oltp_read_write --table-size=100", "SELECT"),
    ] {
        cases.push(case(words, 0, query(text), Act::Silence, &format!("`{text}")));
    }
    // Threads that do not become ready end the run.
    let words = format!("{RUN} --mysql-read-timeout=0 --thread-init-timeout=LIMIT");
    let moment = Moment::Command(Some(PREPARE), "SELECT");
    let parts = [
        "0 of 2 threads were connected and prepared",
        "--thread-init-timeout",
    ];
    cases.push(Case::new(words, 1, moment, Act::Silence, &parts));
    all_refused(&bench, cases);
}

#[test]
fn replies_that_no_server_sends_are_refused_with_bounded_memory() {
    let bench = Bench::prepared("hostile_replies", PREPARED);
    let variables = query("SHOW GLOBAL VARIABLES");
    // libmysqlclient takes some of the malformed packets for an answer; the server answers nothing
    // after them.
    let words = format!("{RUN} --mysql-read-timeout=LIMIT");
    let case = |first, moment, act, part| Case::new(words.clone(), first, moment, act, &[part]);
    all_refused(
        &bench,
        vec![
            case(0, variables, Act::ManyColumns(1 << 60), "error 20"),
            case(0, variables, Act::Packet(b"\xff"), "error 20"),
            case(0, variables, Act::Packet(b"\x00\xfe\x01"), "error 20"),
            case(
                1,
                Moment::Command(Some(PREPARE), ""),
                Act::Packet(b"\x00\x01"),
                // Either limit may come first.
                " s",
            ),
        ],
    );
    // One after the other: each of the endless replies uses a gigabyte.
    let words = format!("{RUN} --mysql-read-timeout=300");
    for (act, part) in [
        (Act::Rows, "1 GiB"),
        // libmysqlclient keeps descriptions of columns up to the largest packet.
        (Act::Columns, "error 20"),
        (Act::ManyColumns(1 << 27), "error 2008"),
    ] {
        all_refused(&bench, vec![Case::new(words.clone(), 0, variables, act, &[part])]);
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_signal_ends_a_generator_whose_server_is_silent() {
    let bench = Bench::prepared("hostile_signal", PREPARED);
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
        let case = Case::new(words, first, moment, Act::Silence, &[]);
        cases.push((case.start(&bench, 0), measured));
    }
    for (started, _) in &mut cases {
        started.terminate_after_act();
    }
    for (started, measured) in cases {
        let (name, _, output) = started.end();
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
    // The other verbs do not handle signals.
    let words = "prepare oltp_insert --tables=3 --mysql-read-timeout=0";
    let mut started = Case::new(words, 1, Moment::Greeted, Act::Silence, &[]).start(&bench, 0);
    started.terminate_after_act();
    assert_eq!(started.end().2.status.signal(), Some(15));
}
