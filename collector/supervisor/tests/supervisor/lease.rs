//! Tests the ends of a supervisor: lease, controller, signal and command. No process of a tree may
//! survive.

use std::fs;
use std::process::Command;
use std::process::Stdio;

use crate::common::Supervisor;
use crate::common::is_alive;
use crate::common::number;
use crate::common::signal;
use crate::common::supervise;
use crate::common::text;
use crate::common::until;
use crate::common::until_dead;
use rustix::process::Signal;

/// Prints the pid of a grandchild in another session, whose parent has exited.
const ESCAPE: &str = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; exec sleep 1000";

/// Runs a test with a short lease. The test returns `None` if the lease expired during its setup,
/// as on a machine that stalled for seconds, and is repeated with a longer one. A lease that always
/// expires too early fails with every length.
fn with_sufficient_lease(test: impl Fn(u64) -> Option<()>) {
    let result = [5, 20, 80].into_iter().find_map(test);
    assert!(result.is_some(), "every lease expired too early");
}

fn start_with_lease(seconds: u64) -> Supervisor {
    Supervisor::start_with(&["--lease", &format!("{seconds}s")])
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_lease_ends_a_whole_tree() {
    with_sufficient_lease(|lease| {
        let supervisor = start_with_lease(lease);
        let owned = supervisor.scratch.path().join("owned");
        fs::create_dir_all(owned.join("below")).unwrap();
        supervisor.ask("own", &[text(&owned)]).ok()?;
        let child = supervisor.ask("run", &["tree", "--", "sh", "-c", ESCAPE]).ok()?;
        let child = number(&child["pid"]);
        // Requests renew the lease until the tree exists.
        let grandchild = until("the grandchild's pid", || {
            if supervisor.ask("status", &[]).is_err() {
                return Some(None);
            }
            Some(Some(supervisor.output("tree").strip_suffix('\n')?.parse().ok()?))
        })?;
        let status = supervisor.ended();
        assert_eq!(status["ended"], "lease", "{status}");
        assert_eq!(status["left"], serde_json::json!([]));
        assert!(!is_alive(child) && !is_alive(grandchild));
        assert!(!owned.exists());
        assert!(!supervisor.dir.join("state.json").exists() && !supervisor.dir.join("control.sock").exists());
        Some(())
    });
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_wait_suspends_the_lease() {
    with_sufficient_lease(|lease| {
        let supervisor = start_with_lease(lease);
        let script = format!("sleep {}; echo slept", 2 * lease);
        supervisor
            .ask("run", &["sleeper", "--", "sh", "-c", &script])
            .ok()?;
        let report = supervisor.ask("wait", &["sleeper", "--for", "300s"]).ok()?;
        assert_eq!(
            (&report["state"], &report["code"]),
            (&"exited".into(), &0.into()),
            "{report}"
        );
        Some(())
    });
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_killed_waiter_does_not_suspend_the_lease() {
    with_sufficient_lease(|lease| {
        let supervisor = start_with_lease(lease);
        supervisor
            .ask("run", &["sleeper", "--", "sh", "-c", "exec sleep 1000"])
            .ok()?;
        let mut waiter = Command::new(env!("CARGO_BIN_EXE_loadprint-supervise"));
        waiter
            .arg("wait")
            .arg("--state")
            .arg(&supervisor.dir)
            .args(["sleeper", "--for", "1000s"]);
        let mut waiter = waiter.stdout(Stdio::null()).spawn().unwrap();
        // The reply shows that the supervisor serves requests; then only the waiter remains.
        let answer = supervisor.ask("note", &["{}"]);
        waiter.kill().unwrap();
        waiter.wait().unwrap();
        answer.ok()?;
        assert_eq!(supervisor.ended()["ended"], "lease");
        Some(())
    });
}

#[test]
fn the_exit_of_the_controller_ends_it() {
    let mut controller = Command::new("sleep").arg("1000").spawn().unwrap();
    let supervisor = Supervisor::start_with(&[
        "--lease",
        "600s",
        "--controller-pid",
        &controller.id().to_string(),
    ]);
    let child = supervisor.run_script("sleeper", &[], "exec sleep 1000");
    // Not reaped yet: a zombie controller counts as exited.
    controller.kill().unwrap();
    let status = supervisor.ended();
    controller.wait().unwrap();
    assert_eq!(status["ended"], "controller", "{status}");
    assert!(!is_alive(child));
}

#[test]
fn a_signal_ends_it_normally() {
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
fn end_stops_in_reverse_order_and_can_be_repeated() {
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
fn concurrent_ends_all_succeed() {
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
