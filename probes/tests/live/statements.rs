//! Tests statement latency with programs that export the function of MySQL and of MariaDB and call
//! it a known number of times. `workloads/tests/statements.rs` tests it with a real server.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// Reads numbers of commands and handles each for a millisecond.
const MAIN: &str = "
    #include <stdio.h>
    #include <time.h>
    enum enum_server_command { COM_SLEEP };
    class THD;
    union COM_DATA;
    static bool handle() { timespec time = {0, 1000000}; nanosleep(&time, nullptr); return false; }
    FUNCTION
    int main() { unsigned command; while (scanf(\"%u\", &command) == 1) { CALL; } }
";
const MYSQL: (&str, &str) = (
    "bool dispatch_command(THD *, const COM_DATA *, enum_server_command) { return handle(); }",
    "dispatch_command(nullptr, nullptr, enum_server_command(command))",
);
const MARIADB: (&str, &str) = (
    "bool dispatch_command(enum_server_command, THD *, char *, unsigned, bool) { return handle(); }",
    "dispatch_command(enum_server_command(command), nullptr, nullptr, 0, false)",
);

/// Compiles a program that exports the function as a server does.
fn server(dir: &Path, name: &str, (function, call): (&str, &str)) -> PathBuf {
    let (source, program) = (dir.join("server.cc"), dir.join(name));
    fs::write(&source, MAIN.replace("FUNCTION", function).replace("CALL", call)).unwrap();
    let built = Command::new("c++")
        .args(["-O1", "-fno-inline", "-rdynamic", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.unwrap().success());
    program
}

struct Running(Child);

impl Running {
    fn start(program: &Path) -> Self {
        Self(Command::new(program).stdin(Stdio::piped()).spawn().unwrap())
    }

    /// Sends commands and waits for the end.
    fn handle(mut self, commands: &str) {
        self.0
            .stdin
            .take()
            .unwrap()
            .write_all(commands.as_bytes())
            .unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has already exited if the test has passed.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn open(target: &str) -> Result<Box<dyn Probe>, NotRunning> {
    let options = Options {
        processes: vec![target.parse().unwrap()],
        symbols: common::symbols(),
        ..Options::default()
    };
    common::open(common::entry("ebpf_statements"), &Host::default(), &options)
}

/// Count, time and traced process of every command.
fn commands(probe: &mut dyn Probe) -> BTreeMap<String, (u64, u64, Option<u64>)> {
    let mut rows = Rows::default();
    common::read(probe, &mut rows).unwrap();
    (0..rows.len())
        .map(|row| {
            let command = rows.entity(row).nth(1).unwrap();
            let (Value::Bits(sum), Value::List(buckets)) = (rows.value(row, 0, 3), rows.value(row, 1, 3))
            else {
                panic!("not a histogram");
            };
            let pid = match rows.value(row, 2, 3) {
                Value::Bits(pid) => Some(pid),
                _ => None,
            };
            let command = String::from_utf8(command.to_vec()).unwrap();
            (command, (buckets.iter().sum(), sum, pid))
        })
        .collect()
}

fn counts(probe: &mut dyn Probe) -> Vec<(String, u64)> {
    let commands = commands(probe).into_iter();
    commands
        .map(|(command, (count, sum, _))| {
            assert!(sum >= count * 1_000_000, "{command}: {sum} ns");
            (command, count)
        })
        .collect()
}

#[test]
fn commands_have_separate_rows_in_both_kinds_of_servers() {
    let dir = tempfile::tempdir().unwrap();
    for (name, kind) in [("mysqld", MYSQL), ("mariadbd", MARIADB)] {
        let running = Running::start(&server(dir.path(), name, kind));
        let mut probe = open(&format!("server={}", running.0.id())).unwrap();
        assert_eq!(commands(probe.as_mut()), BTreeMap::new());
        running.handle(&["3 ".repeat(23), "23 ".repeat(17), "22 5 77".to_owned()].concat());
        let expected = [
            ("COM_QUERY", 23),
            ("COM_STMT_EXECUTE", 17),
            ("COM_STMT_PREPARE", 1),
            ("other", 2),
        ];
        assert_eq!(
            counts(probe.as_mut()),
            expected.map(|(command, count)| (command.to_owned(), count)),
            "{name}"
        );
    }
}

/// A server that starts after the recorder, and one that replaces it, are traced as soon as they
/// are found.
#[test]
fn server_can_start_later_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let program = server(dir.path(), "mysqld", MYSQL);
    let pid_file = dir.path().join("mysqld.pid");
    let mut probe = open(&format!("server=@{}", pid_file.display())).unwrap();
    for round in 1..=2 {
        let running = Running::start(&program);
        let pid = running.0.id();
        fs::write(&pid_file, pid.to_string()).unwrap();
        let before = commands(probe.as_mut()).get("COM_PING").map_or(0, |ping| ping.0);
        let mut stdin = running.0.stdin.as_ref().unwrap();
        let deadline = Instant::now() + Duration::from_secs(300);
        // Pings until one is counted: after that every command is counted.
        while commands(probe.as_mut()).get("COM_PING").map_or(0, |ping| ping.0) == before {
            assert!(
                Instant::now() < deadline,
                "the server of round {round} is not traced"
            );
            stdin.write_all(b"14 ").unwrap();
            thread::yield_now();
        }
        assert_eq!(commands(probe.as_mut())["COM_PING"].2, Some(pid.into()));
        running.handle(&"3 ".repeat(23));
        assert_eq!(commands(probe.as_mut())["COM_QUERY"].0, 23 * round);
    }
    assert_eq!(
        commands(probe.as_mut())["COM_QUERY"].2,
        None,
        "no process is traced"
    );
}

#[test]
fn process_that_is_not_a_server_is_an_error() {
    let Err(NotRunning::Unavailable(reason)) = open(&format!("server={}", process::id())) else {
        panic!("this test is not a server");
    };
    assert!(
        reason.contains("no watched process exports dispatch_command; name a "),
        "{reason}"
    );
}
