//! Tests statement latency with programs that export the function of MySQL and of MariaDB and call
//! it a known number of times. `workloads/tests/statements.rs` tests it with a real server.

use crate::prelude::*;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::process::Command;

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
    let program = dir.join(name);
    let source = MAIN.replace("FUNCTION", function).replace("CALL", call);
    compile("c++", &source, &program, &["-fno-inline", "-rdynamic"]);
    program
}

/// Sends commands and waits for the end of the server.
fn handle(mut server: Running, commands: &str) {
    server.send(commands);
    drop(server.0.stdin.take());
    assert!(server.0.wait().unwrap().success());
}

fn options(target: &str) -> Options {
    Options {
        symbols: common::symbols(),
        ..watching(&[target.to_owned()])
    }
}

fn count(reading: &Reading, command: &str) -> u64 {
    reading.get(&format!("server {command}")).map_or(0, Row::count)
}

#[test]
fn commands_have_separate_rows_in_both_kinds_of_servers() {
    let dir = tempfile::tempdir().unwrap();
    for (name, kind) in [("mysqld", MYSQL), ("mariadbd", MARIADB)] {
        let running = Running::start(&mut Command::new(server(dir.path(), name, kind)));
        let mut probe = Live::open("ebpf_statements", &options(&format!("server={}", running.pid())));
        assert_eq!(probe.read(), Reading::new());
        handle(
            running,
            &["3 ".repeat(23), "23 ".repeat(17), "22 5 77".to_owned()].concat(),
        );
        let reading = probe.read();
        let counts = reading.iter().map(|(command, row)| (&**command, row.count()));
        let expected = [
            ("server COM_QUERY", 23),
            ("server COM_STMT_EXECUTE", 17),
            ("server COM_STMT_PREPARE", 1),
            ("server other", 2),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected, "{name}");
        let is_timed = |row: &Row| row["sum_ns"] >= row.count() * 1_000_000;
        assert!(reading.values().all(is_timed), "{reading:?}");
    }
}

/// A server that starts after the recorder, and one that replaces it, are traced as soon as they
/// are found.
#[test]
fn server_can_start_later_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let program = server(dir.path(), "mysqld", MYSQL);
    let pid_file = dir.path().join("mysqld.pid");
    let target = format!("server=@{}", pid_file.display());
    let mut probe = Live::open("ebpf_statements", &options(&target));
    for round in 1..=2 {
        let mut running = Running::start(&mut Command::new(&program));
        let pid = running.pid();
        fs::write(&pid_file, pid.to_string()).unwrap();
        let before = count(&probe.read(), "COM_PING");
        // Pings until one is counted: after that every command is counted.
        until("the server is traced", || {
            running.send("14 ");
            count(&probe.read(), "COM_PING") > before
        });
        assert_eq!(probe.read()["server COM_PING"]["pid"], u64::from(pid));
        handle(running, &"3 ".repeat(23));
        assert_eq!(count(&probe.read(), "COM_QUERY"), 23 * round);
    }
    let row = &probe.read()["server COM_QUERY"];
    assert!(!row.numbers.contains_key("pid"), "no process is traced");
}

#[test]
fn process_that_is_not_a_server_is_an_error() {
    let options = options(&format!("server={}", process::id()));
    let reason = refusal("ebpf_statements", &options).to_string();
    assert!(
        reason.contains("no watched process exports dispatch_command; name a "),
        "{reason}"
    );
}
