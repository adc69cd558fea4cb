//! Tests the ends of a supervisor: lease, controller, signal, command, and SIGKILL of its processes.
//! No process of a tree may survive; the guard, the next `start` or `end` cleans up.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use crate::hang::Hang;
use crate::prelude::*;
use rustix::process::Signal;

/// Runs a test with a short lease. The test returns `None` if the lease expired during its setup,
/// as on a machine that stalled for seconds, and is repeated with a longer one. A lease that always
/// expires too early fails with every length.
fn with_sufficient_lease(test: impl Fn(u64, Supervisor) -> Option<()>) {
    let result = [5, 20, 80].into_iter().find_map(|seconds| {
        test(
            seconds,
            Supervisor::start_with(&["--lease", &format!("{seconds}s")]),
        )
    });
    assert!(result.is_some(), "every lease expired too early");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_lease_ends_a_whole_tree() {
    with_sufficient_lease(|_, supervisor| {
        let owned = supervisor.scratch.path().join("owned");
        fs::create_dir_all(owned.join("below")).unwrap();
        supervisor.ask("own", &[text(&owned)]).ok()?;
        let child = supervisor.try_script("tree", &[], ESCAPE).ok()?;
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
    with_sufficient_lease(|lease, supervisor| {
        let script = format!("sleep {}; echo slept", 2 * lease);
        supervisor.try_script("sleeper", &[], &script).ok()?;
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
    with_sufficient_lease(|_, supervisor| {
        supervisor.try_script("sleeper", &[], "exec sleep 1000").ok()?;
        let mut waiter = Command::new(env!("CARGO_BIN_EXE_loadprint-supervise"))
            .args([
                "wait",
                "--state",
                text(&supervisor.dir),
                "sleeper",
                "--for",
                "1000s",
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
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

struct Held {
    child: u32,
    grandchild: u32,
    interface: String,
    owned: PathBuf,
    _network: Network,
}

impl Held {
    fn assert_gone(&self) {
        assert!(!is_alive(self.child) && !is_alive(self.grandchild));
        assert!(!self.owned.exists());
    }
}

fn hold_one_of_each(supervisor: &Supervisor) -> Held {
    let owned = supervisor.scratch.path().join("owned");
    fs::create_dir(&owned).unwrap();
    fs::write(owned.join("file"), "x").unwrap();
    supervisor.ask("own", &[text(&owned)]).unwrap();
    let network = Network::reserve();
    let netns = supervisor
        .netns("load", &network.cidr(1, 30), &network.cidr(2, 30))
        .unwrap();
    let interface = netns["host_interface"].as_str().unwrap().to_owned();
    assert!(has_interface(&interface));
    let child = supervisor.run_script("tree", &["--netns", "load"], ESCAPE);
    Held {
        child,
        grandchild: supervisor.printed_pid("tree"),
        interface,
        owned,
        _network: network,
    }
}

/// The guard cleans up after the daemon, which ends in order without its guard.
#[test]
fn one_of_both_cleans_up_after_the_other() {
    for ended in ["killed", "signal"] {
        let supervisor = Supervisor::start();
        let held = hold_one_of_each(&supervisor);
        let killed = [supervisor.guard, supervisor.pid][usize::from(ended == "killed")];
        signal(killed, Signal::KILL);
        let status = supervisor.ended();
        assert_eq!(status["ended"], ended, "{status}");
        held.assert_gone();
        assert!(!has_interface(&held.interface), "{ended}");
        let error = supervisor.ask("status", &[]).unwrap_err();
        assert!(error.contains(&format!("the last one ended: {ended}")), "{error}");
        let next = Supervisor::start_in(supervisor.into_scratch(), &["--lease", "600s"]);
        assert!(next.ready["cleaned"].is_null(), "{}", next.ready);
    }
}

/// Kills daemon and guard; PDEATHSIG and the kernel do not remove everything.
fn kill_both(supervisor: &Supervisor, held: &Held) {
    // A stopped daemon does not handle the SIGTERM that the guard's exit sends.
    stop(supervisor.pid);
    signal(supervisor.guard, Signal::KILL);
    until_dead(supervisor.guard);
    signal(supervisor.pid, Signal::KILL);
    until_dead(supervisor.pid);
    // PDEATHSIG kills direct children.
    until_dead(held.child);
    assert!(is_alive(held.grandchild) && held.owned.exists());
}

#[test]
fn the_next_start_or_end_cleans_up_after_both() {
    for verb in ["start", "end"] {
        let supervisor = Supervisor::start();
        let (held, pid) = (hold_one_of_each(&supervisor), supervisor.pid);
        kill_both(&supervisor, &held);
        let (supervisor, cleaned) = if verb == "end" {
            let report = supervisor.ask("end", &[]).unwrap();
            (supervisor, report["cleaned"].clone())
        } else {
            let next = Supervisor::start_in(supervisor.into_scratch(), &["--lease", "600s"]);
            let cleaned = next.ready["cleaned"].clone();
            (next, cleaned)
        };
        assert_eq!(cleaned["pid"], pid, "{verb}: {cleaned}");
        assert_eq!(
            cleaned["interfaces"][0],
            held.interface.as_str(),
            "{verb}: {cleaned}"
        );
        held.assert_gone();
        until("the veth is gone", || {
            (!has_interface(&held.interface)).then_some(())
        });
        assert!(supervisor.ask("end", &[]).unwrap()["cleaned"].is_null(), "{verb}");
    }
}

/// A process in execve(2) that closes a file of fuse(4) blocks the readers of its files, `stat` among them.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_process_that_blocks_its_readers_delays_nothing() {
    let supervisor = Supervisor::start();
    let Some(hang) = Hang::start(supervisor.scratch.path()) else {
        return;
    };
    let own_mount = supervisor.scratch.path().join("own");
    fs::create_dir(&own_mount).unwrap();
    let run = [
        "server",
        "--cpus",
        "0",
        "--",
        text(&hang.program),
        text(&own_mount),
    ];
    supervisor.ask("run", &run).unwrap();
    supervisor.printed_pid("server");
    assert_eq!(supervisor.ask("stop", &["server"]).unwrap()["signal"], "TERM");

    supervisor.ask("run", &run).unwrap();
    stop(supervisor.pid);
    for pid in [supervisor.guard, supervisor.pid] {
        signal(pid, Signal::KILL);
        until_dead(pid);
    }
    let report = supervisor.ask("end", &[]).unwrap();
    assert_eq!(report["cleaned"]["pid"], supervisor.pid, "{report}");
}

#[test]
fn processes_of_others_are_not_killed() {
    let bystander = scratch();
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let state_dir = bystander.path().join("state");
    create_dir(&state_dir, 0o700);
    // The state of this boot, with a group that is gone.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let left = serde_json::json!({
        "boot_id": boot.trim(), "group": "loadprint-1.0", "pid": other.id(),
        "mounts": [], "interfaces": ["lp1n0"], "owned": [],
    });
    fs::write(state_dir.join("state.json"), left.to_string()).unwrap();
    let supervisor = Supervisor::start_in(bystander, &["--lease", "600s"]);
    assert_eq!(supervisor.ready["cleaned"]["pid"], other.id());
    assert!(is_alive(other.id()));
    other.kill().unwrap();
    other.wait().unwrap();
}
