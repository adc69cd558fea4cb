//! Connections: TLS and compression over TCP, several sockets in turn, reconnects by option and
//! after the server's death.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use crate::prelude::*;

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn tls_is_used_verified_and_recorded() {
    let bench = Bench::new("tls");
    let server = Mysqld::start();
    server.succeed("prepare oltp_read_write --table-size=1000");
    let words = "run oltp_point_select --table-size=1000 --threads=2 --events=100 --format=json";
    let authority = server.authority().display().to_string();
    let lines = format!("[client]\nssl-mode=VERIFY_CA\nssl-ca={authority}\n");
    let file = bench.private_file("client.cnf", &lines);
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
        (format!("--defaults-file={file}"), "verify_ca"),
        // A CA alone, as in the clients of MySQL.
        (format!("--mysql-ssl-ca={authority}"), "verify_ca"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = bench.path(&format!("run-{number}"));
        let words = format!("{words} {options} --out={}", run.display());
        let result = printed_json(&server.command(&words).output().unwrap());
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
    let plain = printed_json(&server.command(words).output().unwrap());
    assert_eq!(
        plain["tls"],
        serde_json::json!({"mode": "disabled", "cipher": null})
    );

    // The server's certificate names no host.
    let identity = format!("--mysql-ssl=verify_identity --mysql-ssl-ca={authority}");
    for (options, part) in [
        (identity.as_str(), "error 2026"),
        ("--mysql-ssl=verify_ca", "--mysql-ssl-ca"),
        (
            "--mysql-ssl=verify_ca --mysql-ssl-ca=/nonexistent",
            "no such file",
        ),
    ] {
        let output = server.command(&format!("{words} {options}")).output().unwrap();
        assert_refused(&output, &[part]);
    }
}

#[test]
fn compression_reduces_the_bytes_that_the_server_sends() {
    let bench = Bench::prepared("compression", "oltp_read_write --table-size=1000");
    let sent = |option: &str| {
        let words = format!(
            "run oltp_read_write --table-size=1000 --rand-type=uniform --index-updates=0 --non-index-updates=0 --delete-inserts=0 \
             --threads=1 --events=100 --mysql-compression={option}"
        );
        growth(&bench.recorded(&words, option).1, "Bytes_sent")
    };
    let (plain, compressed) = (sent("off"), sent("on"));
    assert!(
        compressed < plain * 3 / 4,
        "{compressed} bytes compressed, {plain} plain"
    );
}

/// Forwards connections at `front` to the socket `back`; gives their number so far.
fn counting_proxy(front: &Path, back: &str) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(front).unwrap();
    let (accepted, back) = (Arc::new(AtomicUsize::new(0)), back.to_owned());
    let counter = Arc::clone(&accepted);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            counter.fetch_add(1, SeqCst);
            let server = UnixStream::connect(&back).unwrap();
            let copies = (client.try_clone().unwrap(), server.try_clone().unwrap());
            for (mut from, mut to) in [copies, (server, client)] {
                thread::spawn(move || {
                    io::copy(&mut from, &mut to).ok();
                    to.shutdown(Shutdown::Write).ok();
                });
            }
        }
    });
    accepted
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn threads_connect_to_the_sockets_in_turn() {
    let bench = Bench::prepared("sockets", "oltp_read_write --table-size=1000");
    let (one, two) = (bench.path("one.sock"), bench.path("two.sock"));
    let back = variable("LOADPRINT_TEST_SOCKET");
    let proxies = [&one, &two].map(|front| counting_proxy(front, &back));
    let mut command =
        bench.command("run oltp_point_select --table-size=1000 --threads=5 --events=100 --format=json");
    // The later option wins.
    command.arg(format!("--mysql-socket={},{}", one.display(), two.display()));
    let result = printed_json(&command.output().unwrap());
    assert_eq!(
        result["servers"],
        serde_json::json!([one.display().to_string(), two.display().to_string()])
    );
    // Threads 0, 2 and 4 and the reader of the counters; threads 1 and 3.
    assert_eq!(proxies.map(|accepted| accepted.load(SeqCst)), [4, 2]);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn reconnect_opens_the_connection_and_prepares_its_statements_again() {
    let bench = Bench::prepared("reopen", "oltp_read_write --table-size=1000");
    for (every, times) in [(1, 60), (20, 3)] {
        let (result, server) = bench.recorded(
            &format!("run oltp_point_select --table-size=1000 --threads=1 --events=60 --reconnect={every}"),
            &format!("every-{every}"),
        );
        assert_eq!(growth(&server, "Connections"), times);
        assert_eq!(growth(&server, "Com_stmt_prepare"), times);
        // A close has no reply: the server counts some of them after the generator has read its
        // counters.
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

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn threads_reconnect_to_a_server_that_is_killed_or_shut_down_and_starts_again() {
    let bench = Bench::new("restart");
    let server = Mysqld::start();
    server.succeed("prepare oltp_read_write --table-size=1000");
    let run = bench.path("run");
    let words = format!(
        "run oltp_read_write --table-size=1000 --threads=3 --time=600 --mysql-ignore-errors=1213,1205,1020,1053,2006,2013 \
         --reconnect-timeout=600 --out={}",
        run.display()
    );
    let mut running = Running::start(server.command(&words));
    // In an orderly end, statements fail with 1053.
    for end in [Mysqld::kill, Mysqld::shut_down] {
        running.wait_for_transactions();
        end(&server);
        running.wait_for_line(|line| line.contains(" tps: 0.00 "));
        server.start_again();
        // All three have connected again and changed rows.
        let updating = "SELECT COUNT(*) FROM performance_schema.status_by_thread \
                       WHERE variable_name = 'Handler_update' AND variable_value > 0";
        let sql = server.sql();
        sql.wait_until("all threads update rows", updating, |threads| threads == 3);
    }
    running.wait_for_transactions();
    running.signal("TERM");
    let output = running.end();
    assert_eq!(output.status.code(), Some(143), "{}", only_line(&output));
    let result = json(&run.join("load/result.json"));
    let reconnects = &result["reconnects_by_cause"];
    assert!(
        reconnects["asked"] == 0 && reconnects["error"].as_u64() >= Some(6),
        "{result}"
    );
    assert!(result["errors"].as_u64() >= Some(6), "{result}");
    let counts = json(&run.join("load/server.json"));
    assert!(counts["status_end"].is_null(), "counters of another process");
    assert_eq!(counts["restarted"], true);

    // A server that does not start again ends the run after --reconnect-timeout.
    let words = format!("{words}-gone").replace("--reconnect-timeout=600", "--reconnect-timeout=1");
    let mut running = Running::start(server.command(&words));
    running.wait_for_transactions();
    server.kill();
    // Refused, or lost in the middle of the greeting of a process that takes longer to die.
    assert_refused(&running.end(), &["within 1 s (--reconnect-timeout)", "error 20"]);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_killed_server_ends_the_run_with_thread_and_place() {
    let bench = Bench::new("killed_for_good");
    let server = Mysqld::start();
    // TPROC-C reads the server again at the end.
    for (workload, options, place) in [
        (
            "oltp_read_write",
            "--table-size=1000 --threads=8",
            "oltp_read_write",
        ),
        ("tproc_c", "--threads=1", "`CALL`"),
    ] {
        server.succeed(&format!("prepare {workload} {options}"));
        let run = bench.path(workload);
        let words = format!(
            "run {workload} {options} --time=600 --rate=200 --out={}",
            run.display()
        );
        let mut running = Running::start(server.command(&words));
        running.wait_for_transactions();
        server.kill();
        assert_refused(&running.end(), &["thread ", place, "error 20", "the server"]);
        let result = json(&run.join("load/result.json"));
        assert_eq!(
            (&result["status"], &result["mode"]),
            (&"failed".into(), &"open".into())
        );
        assert!(result["events"].as_u64() > Some(0));
        assert_eq!(json(&run.join("run.json"))["status"], "failed");
        let counts = json(&run.join("load/server.json"));
        assert!(counts["status_begin"].is_object() && counts["status_end"].is_null());
        server.start_again();
    }
}

/// The connection that reads the counters is idle while the load runs.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_counters_are_read_after_a_run_longer_than_the_servers_wait_timeout() {
    let bench = Bench::new("idle");
    let server = Mysqld::start();
    server.succeed("prepare oltp_read_write --table-size=1000");
    server.sql().rows("SET GLOBAL wait_timeout = 2");
    let run = bench.path("run");
    server.succeed(&format!(
        "run oltp_point_select --table-size=1000 --time=6 --out={}",
        run.display()
    ));
    let counts = json(&run.join("load/server.json"));
    assert!(growth(&counts, "Com_stmt_execute") > 0);
    assert_eq!(json_lines(&run.join("load/clock.jsonl")).len(), 2);
}
