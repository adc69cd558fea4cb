//! Connections: TLS and compression over TCP, several sockets in turn, connections opened again as asked for and after a server's death.

use std::io::BufRead;
use std::io::BufReader;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::mysqld::Mysqld;
use crate::common::only_line;
use crate::common::proxy::Proxy;
use crate::common::variable;
use serde_json::Value;

/// The generator on a server of the test's own.
fn command(server: &Mysqld, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-load"));
    command.args(words.split_whitespace()).args(server.connection());
    command.env_remove("MYSQL_PWD").stdin(Stdio::null());
    command
}

fn result(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tls_is_used_verified_and_recorded() {
    let bench = Bench::new("tls");
    let server = Mysqld::start();
    let prepared = command(&server, "prepare oltp_read_write --table-size=1000").output();
    assert!(prepared.unwrap().status.success());
    let words = "run oltp_point_select --table-size=1000 --threads=2 --events=100 --format=json";
    let authority = server.authority().display().to_string();
    for (number, (options, mode)) in [
        ("--mysql-ssl=required".to_owned(), "required"),
        (
            format!("--mysql-ssl=verify_ca --mysql-ssl-ca={authority}"),
            "verify_ca",
        ),
        (
            "--mysql-ssl=on --mysql-ssl-cipher=TLS_AES_128_GCM_SHA256".to_owned(),
            "required",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let run = bench.path(&format!("run-{number}"));
        let words = format!("{words} {options} --out={}", run.display());
        let result = result(&command(&server, &words).output().unwrap());
        assert_eq!(result["tls"]["mode"], mode);
        let cipher = result["tls"]["cipher"].as_str().unwrap();
        assert!(cipher.starts_with("TLS_"), "{cipher}");
        if options.contains("_128_") {
            assert_eq!(cipher, "TLS_AES_128_GCM_SHA256");
        }
        // The reader's connection and both threads', in each run.
        let finished = &json(&run.join("load/server.json"))["status_end"]["Ssl_finished_accepts"];
        let finished: usize = finished.as_str().unwrap().parse().unwrap();
        assert_eq!(finished, 3 * (number + 1));
    }
    let plain = result(&command(&server, words).output().unwrap());
    assert_eq!(
        plain["tls"],
        serde_json::json!({"mode": "disabled", "cipher": null})
    );

    // The server's own certificate names no host, and a file that is no authority of it does not verify.
    let refused = |options: &str| {
        let output = command(&server, &format!("{words} {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    };
    let identity = refused(&format!("--mysql-ssl=verify_identity --mysql-ssl-ca={authority}"));
    assert!(identity.contains("error 2026"), "{identity}");
    assert!(refused("--mysql-ssl=verify_ca").contains("--mysql-ssl-ca"));
    assert!(refused("--mysql-ssl=verify_ca --mysql-ssl-ca=/nonexistent").contains("no such file"));
}

#[test]
fn compression_shrinks_what_the_server_sends() {
    let bench = Bench::new("compression");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let sent = |option: &str| {
        let run = bench.path(option);
        bench.succeed(&format!(
            "run oltp_read_write --table-size=1000 --rand-type=uniform --index-updates=0 --non-index-updates=0 --delete-inserts=0 \
             --threads=1 --events=100 --mysql-compression={option} --out={}",
            run.display()
        ));
        growth(&json(&run.join("load/server.json")), "Bytes_sent")
    };
    let (plain, compressed) = (sent("off"), sent("on"));
    assert!(
        compressed < plain * 3 / 4,
        "{compressed} bytes compressed, {plain} plain"
    );
}

#[test]
fn sockets_are_taken_in_turn() {
    let bench = Bench::new("sockets");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let (one, two) = (bench.path("one.sock"), bench.path("two.sock"));
    let back = variable("LOADPRINT_TEST_SOCKET");
    let proxies = [Proxy::start(&one, &back), Proxy::start(&two, &back)];
    let mut command =
        bench.command("run oltp_point_select --table-size=1000 --threads=5 --events=100 --format=json");
    // The later option wins.
    command.arg(format!("--mysql-socket={},{}", one.display(), two.display()));
    let result = result(&command.output().unwrap());
    assert_eq!(
        result["servers"],
        serde_json::json!([one.display().to_string(), two.display().to_string()])
    );
    // Threads 0, 2 and 4 and the reader of the counters; threads 1 and 3.
    assert_eq!(proxies.map(|proxy| proxy.accepted()), [4, 2]);
}

#[test]
fn a_connection_is_opened_again_as_often_as_asked_for_and_its_statements_with_it() {
    let bench = Bench::new("reopen");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    for (every, times) in [(1, 60), (20, 3)] {
        let (result, server) = bench.recorded(
            &format!("run oltp_point_select --table-size=1000 --threads=1 --events=60 --reconnect={every}"),
            &format!("every-{every}"),
        );
        assert_eq!(growth(&server, "Connections"), times);
        assert_eq!(growth(&server, "Com_stmt_prepare"), times);
        // Nobody answers a close: the server counts some of them after the generator has read its counters.
        assert!(growth(&server, "Com_stmt_close") <= times);
        assert_eq!(result["protocol_calls"]["closes"], times);
        assert_eq!(growth(&server, "Com_stmt_execute"), 60);
        assert_eq!(
            result["reconnects_by_cause"],
            serde_json::json!({"asked": times, "error": 0})
        );
        assert_eq!(
            (&result["reconnects"], &result["errors"], &result["events"]),
            (&times.into(), &0.into(), &60.into())
        );
    }
}

/// Starts the generator and gives the lines that it prints.
fn spawn(server: &Mysqld, words: &str) -> (Child, impl Iterator<Item = String>) {
    let mut child = command(server, words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap());
    (child, printed.lines().map(Result::unwrap))
}

/// A line of a second with transactions: on a machine that stalls not every second has some.
fn something_was_done(line: &str) -> bool {
    line.contains(" tps: ") && !line.contains(" tps: 0.00 ")
}

/// Reads lines until one has what is wanted.
fn await_line(lines: &mut impl Iterator<Item = String>, wanted: impl Fn(&str) -> bool) {
    let mut seen = Vec::new();
    for line in lines {
        if wanted(&line) {
            return;
        }
        seen.push(line);
    }
    panic!("the wanted line did not come: {seen:#?}");
}

#[test]
fn a_server_killed_in_mid_run_and_started_again_is_used_on() {
    let bench = Bench::new("restart");
    let server = Mysqld::start();
    let prepared = command(&server, "prepare oltp_read_write --table-size=1000").output();
    assert!(prepared.unwrap().status.success());
    let run = bench.path("run");
    let words = format!(
        "run oltp_read_write --table-size=1000 --threads=3 --time=600 --mysql-ignore-errors=1213,1205,1020,2006,2013 \
         --reconnect-timeout=600 --out={}",
        run.display()
    );
    let (child, mut lines) = spawn(&server, &words);
    await_line(&mut lines, something_was_done);
    server.kill();
    await_line(&mut lines, |line| line.contains(" tps: 0.00 "));
    server.start_again();
    // All three are back, and have changed something since.
    let at_work = "SELECT COUNT(*) FROM performance_schema.status_by_thread \
                   WHERE variable_name = 'Handler_update' AND variable_value > 0";
    let sql = server.sql();
    sql.wait_until("the threads do not come back", at_work, |threads| threads == 3);
    drop(sql);
    await_line(&mut lines, something_was_done);
    let ended = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(ended.unwrap().success());
    let rest: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(143),
        "{}: {rest:?}",
        only_line(&output)
    );
    let result = json(&run.join("load/result.json"));
    assert_eq!(
        result["reconnects_by_cause"],
        serde_json::json!({"asked": 0, "error": 3})
    );
    let counts = json(&run.join("load/server.json"));
    assert!(counts["status_end"].is_null(), "counters of another life");
    assert_eq!(counts["restarted"], true);

    // One that does not come back is waited for as long as asked, then named.
    let words = format!("{words}-gone").replace("--reconnect-timeout=600", "--reconnect-timeout=1");
    let (child, mut lines) = spawn(&server, &words);
    await_line(&mut lines, something_was_done);
    server.kill();
    let rest: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{rest:?}");
    let line = only_line(&output);
    // Refused, or lost in the middle of a greeting by a process that takes longer than that to go.
    for part in ["within 1 s (--reconnect-timeout)", "error 20"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}

#[test]
fn a_server_killed_in_mid_run_ends_the_run_with_its_thread_and_place() {
    let bench = Bench::new("killed_for_good");
    let server = Mysqld::start();
    let prepared = command(&server, "prepare oltp_read_write --table-size=1000").output();
    assert!(prepared.unwrap().status.success());
    let run = bench.path("run");
    let words = format!(
        "run oltp_read_write --table-size=1000 --threads=8 --time=600 --rate=200 --out={}",
        run.display()
    );
    let (child, mut lines) = spawn(&server, &words);
    await_line(&mut lines, something_was_done);
    server.kill();
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let line = only_line(&output);
    for part in ["thread ", "oltp_read_write", "error 20", "the server"] {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
    let result = json(&run.join("load/result.json"));
    assert_eq!(
        (&result["status"], &result["mode"]),
        (&"failed".into(), &"open".into())
    );
    assert!(result["events"].as_u64() > Some(0));
}
