//! When a supervisor ends by itself: lease, controller, signal; and that nothing of a tree outlives it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::process::Command;
use std::process::Stdio;

use common::Supervisor;
use common::is_alive;
use common::signal;
use common::supervise;
use common::text;
use common::until;
use common::until_dead;
use rustix::process::Signal;

/// Prints the pid of a grandchild in a session of its own, whose parent has gone.
const ESCAPE: &str = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; exec sleep 1000";

#[test]
fn the_lease_ends_a_whole_tree() {
    let supervisor = Supervisor::start_with(&["--lease", "5s"]);
    let owned = supervisor.scratch.path().join("owned");
    fs::create_dir_all(owned.join("below")).unwrap();
    supervisor.ask("own", &[text(&owned)]).unwrap();
    let child = supervisor.run_script("tree", &[], ESCAPE);
    // Whoever asks holds the lease: it must not end before there is a tree.
    let grandchild = until("the grandchild's pid", || {
        supervisor.ask("status", &[]).unwrap();
        supervisor.output("tree").strip_suffix('\n')?.parse().ok()
    });
    let status = supervisor.ended();
    assert_eq!(status["ended"], "lease", "{status}");
    assert_eq!(status["left"], serde_json::json!([]));
    assert!(!is_alive(child) && !is_alive(grandchild));
    assert!(!owned.exists());
    assert!(!supervisor.dir.join("state.json").exists() && !supervisor.dir.join("control.sock").exists());
}

#[test]
fn waiting_holds_the_lease() {
    let supervisor = Supervisor::start_with(&["--lease", "4s"]);
    supervisor.run_script("sleeper", &[], "sleep 9; echo slept");
    let report = supervisor.wait("sleeper");
    assert_eq!(
        (&report["state"], &report["code"]),
        (&"exited".into(), &0.into()),
        "{report}"
    );
}

#[test]
fn a_waiter_that_was_killed_holds_nothing() {
    let supervisor = Supervisor::start_with(&["--lease", "4s"]);
    supervisor.run_script("sleeper", &[], "exec sleep 1000");
    let mut waiter = Command::new(env!("CARGO_BIN_EXE_loadprint-supervise"));
    waiter
        .arg("wait")
        .arg("--state")
        .arg(&supervisor.dir)
        .args(["sleeper", "--for", "1000s"]);
    let mut waiter = waiter.stdout(Stdio::null()).spawn().unwrap();
    // Its own answer shows that the socket is served; then only the waiter is left.
    supervisor.ask("note", &["{}"]).unwrap();
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    assert_eq!(supervisor.ended()["ended"], "lease");
}

#[test]
fn the_end_of_the_controller_is_the_end() {
    let mut controller = Command::new("sleep").arg("1000").spawn().unwrap();
    let supervisor = Supervisor::start_with(&[
        "--lease",
        "600s",
        "--controller-pid",
        &controller.id().to_string(),
    ]);
    let child = supervisor.run_script("sleeper", &[], "exec sleep 1000");
    // Not collected at once: a zombie controller has ended as well.
    controller.kill().unwrap();
    let status = supervisor.ended();
    controller.wait().unwrap();
    assert_eq!(status["ended"], "controller", "{status}");
    assert!(!is_alive(child));
}

#[test]
fn a_signal_ends_it_in_order() {
    for stop in [Signal::TERM, Signal::INT, Signal::HUP] {
        let supervisor = Supervisor::start();
        supervisor.run_script("first", &[], "trap 'exit 11' TERM; while :; do sleep 0.01; done");
        signal(supervisor.pid, stop);
        let status = supervisor.ended();
        assert_eq!(status["ended"], "signal", "{status}");
        let first = &status["processes"][0];
        assert!(first["code"] == 11 || first["signal"] == "TERM", "{first}");
    }
}

#[test]
fn end_stops_in_reverse_order_and_twice_is_fine() {
    let supervisor = Supervisor::start();
    let record = supervisor.scratch.path().join("order");
    for name in ["server", "load"] {
        let script = format!(
            "trap 'echo {name} >> {}; exit 0' TERM; echo $$; while :; do sleep 0.01; done",
            text(&record)
        );
        supervisor.run_script(name, &[], &script);
        supervisor.printed_pid(name);
    }
    let first = supervisor.ask("end", &[]).unwrap();
    assert_eq!(first, serde_json::json!({"ended": "end", "was_running": true}));
    assert!(!is_alive(supervisor.pid) && !is_alive(supervisor.guard));
    assert_eq!(fs::read_to_string(record).unwrap(), "load\nserver\n");
    let second = supervisor.ask("end", &[]).unwrap();
    assert_eq!(
        second,
        serde_json::json!({"ended": "end", "was_running": false, "cleaned": null})
    );
    let nowhere = supervisor.scratch.path().join("nowhere");
    assert_eq!(supervise("end", &nowhere, &[]).unwrap()["was_running"], false);
}

#[test]
fn many_may_ask_for_the_end_at_once() {
    let supervisor = Supervisor::start();
    let child = supervisor.run_script("sleeper", &[], "exec sleep 1000");
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| supervisor.ask("end", &[]).unwrap()["ended"].clone()))
            .collect();
        for answer in asking {
            assert_eq!(answer.join().unwrap(), "end");
        }
    });
    until_dead(child);
}
