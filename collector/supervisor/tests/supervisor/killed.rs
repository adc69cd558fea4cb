//! Tests SIGKILL of the supervisor's processes: the guard, the next `start` or `end` cleans up.

use crate::common;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::Network;
use crate::common::Supervisor;
use crate::common::has_interface;
use crate::common::is_alive;
use crate::common::signal;
use crate::common::stop;
use crate::common::text;
use crate::common::until;
use crate::common::until_dead;
use rustix::process::Signal;

const ESCAPE: &str = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; exec sleep 1000";

struct Held {
    child: u32,
    grandchild: u32,
    interface: String,
    owned: std::path::PathBuf,
    _network: Network,
}

fn hold_one_of_each(supervisor: &Supervisor) -> Held {
    let owned = supervisor.scratch.path().join("owned");
    fs::create_dir(&owned).unwrap();
    fs::write(owned.join("file"), "x").unwrap();
    supervisor.ask("own", &[text(&owned)]).unwrap();
    let network = Network::reserve();
    let addresses = [network.cidr(1, 30), network.cidr(2, 30)];
    let netns = supervisor
        .ask(
            "netns",
            &[
                "load",
                "--host-address",
                &addresses[0],
                "--peer-address",
                &addresses[1],
            ],
        )
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

#[test]
fn the_guard_cleans_up_after_the_daemon() {
    let supervisor = Supervisor::start();
    let held = hold_one_of_each(&supervisor);
    signal(supervisor.pid, Signal::KILL);
    let status = supervisor.ended();
    assert_eq!(status["ended"], "killed", "{status}");
    assert!(!is_alive(held.child) && !is_alive(held.grandchild));
    assert!(!has_interface(&held.interface) && !held.owned.exists());
    let error = supervisor.ask("status", &[]).unwrap_err();
    assert!(error.contains("the last one ended: killed"), "{error}");
    let scratch = supervisor.into_scratch();
    let next = Supervisor::start_in(scratch, &["--lease", "600s"]);
    assert!(next.ready["cleaned"].is_null(), "{}", next.ready);
}

#[test]
fn the_daemon_ends_in_order_without_its_guard() {
    let supervisor = Supervisor::start();
    let held = hold_one_of_each(&supervisor);
    signal(supervisor.guard, Signal::KILL);
    let status = supervisor.ended();
    assert_eq!(status["ended"], "signal", "{status}");
    assert!(!is_alive(held.child) && !is_alive(held.grandchild));
    assert!(!has_interface(&held.interface) && !held.owned.exists());
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
fn the_next_start_cleans_up_after_both() {
    let supervisor = Supervisor::start();
    let held = hold_one_of_each(&supervisor);
    kill_both(&supervisor, &held);
    let next = Supervisor::start_in(supervisor.into_scratch(), &["--lease", "600s"]);
    assert_eq!(
        next.ready["cleaned"]["interfaces"][0],
        held.interface.as_str(),
        "{}",
        next.ready
    );
    assert!(!is_alive(held.grandchild) && !held.owned.exists());
    until("the veth is gone", || {
        (!has_interface(&held.interface)).then_some(())
    });
}

#[test]
fn end_cleans_up_after_both() {
    let supervisor = Supervisor::start();
    let held = hold_one_of_each(&supervisor);
    kill_both(&supervisor, &held);
    let report = supervisor.ask("end", &[]).unwrap();
    assert_eq!(report["cleaned"]["pid"], supervisor.pid, "{report}");
    assert!(!is_alive(held.grandchild) && !held.owned.exists());
    assert!(supervisor.ask("end", &[]).unwrap()["cleaned"].is_null());
}

#[test]
fn processes_of_others_are_not_killed() {
    let bystander = common::scratch();
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let state_dir = bystander.path().join("state");
    fs::create_dir(&state_dir).unwrap();
    fs::set_permissions(&state_dir, PermissionsExt::from_mode(0o700)).unwrap();
    // A state file with the same boot ID and pid, but another start time.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let left = serde_json::json!({
        "boot_id": boot.trim(), "token": "none", "pid": 1, "processes": [{"pid": other.id(), "start_time": 1}],
        "mounts": [], "interfaces": ["lp1n0"], "owned": [],
    });
    fs::write(state_dir.join("state.json"), left.to_string()).unwrap();
    let supervisor = Supervisor::start_in(bystander, &["--lease", "600s"]);
    assert_eq!(supervisor.ready["cleaned"]["pid"], 1);
    assert!(is_alive(other.id()));
    other.kill().unwrap();
    other.wait().unwrap();
}
