//! Tests private mounts, network namespaces and CPU sets, and their removal.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::mpsc::channel;
use std::thread;

use crate::prelude::*;
use rustix::thread::LinkNameSpaceType;
use rustix::thread::move_into_link_name_space;
use serde_json::Value;

/// Also if they end with the guard.
#[test]
fn mounts_are_private_and_undone_before_owned_paths_are_removed() {
    for is_killed in [false, true] {
        let supervisor = Supervisor::start();
        let (source, destination) = (
            supervisor.scratch.path().join("source"),
            supervisor.scratch.path().join("own/data"),
        );
        fs::create_dir(&source).unwrap();
        fs::create_dir_all(&destination).unwrap();
        fs::write(source.join("ibdata1"), "kept").unwrap();
        let bind = ["--bind", text(&source), text(&destination)];
        let mut requests = [
            ("own", &[text(destination.parent().unwrap())][..]),
            ("mount", &bind),
        ];
        if is_killed {
            requests.reverse();
        }
        for (verb, arguments) in requests {
            supervisor.ask(verb, arguments).unwrap();
        }
        let script = format!("cat {}/ibdata1; exec sleep 1000", text(&destination));
        supervisor.run_script("inside", &[], &script);
        until("the file is visible inside", || {
            (supervisor.output("inside") == "kept").then_some(())
        });
        assert!(!destination.join("ibdata1").exists());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(text(&destination)));
        if is_killed {
            signal(supervisor.pid, rustix::process::Signal::KILL);
            assert_eq!(supervisor.ended()["left"], serde_json::json!([]));
        } else {
            supervisor.ask("end", &[]).unwrap();
        }
        assert!(!destination.exists());
        assert_eq!(fs::read_to_string(source.join("ibdata1")).unwrap(), "kept");
    }
}

#[test]
fn a_namespace_connects_through_its_veth_pair() {
    let network = Network::reserve();
    let supervisor = Supervisor::start();
    let netns = supervisor
        .netns("load", &network.cidr(1, 30), &network.cidr(2, 30))
        .unwrap();
    let interface = netns["host_interface"].as_str().unwrap();
    let inside = supervisor.run_script("inside", &["--netns", "load"], "exec sleep 1000");
    // As in a campaign, the server is on the host and the client is in the namespace.
    let server = TcpListener::bind((network.address(1).as_str(), 0)).unwrap();
    let address = server.local_addr().unwrap();
    let (give, take) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let namespace = File::open(format!("/proc/{inside}/ns/net")).unwrap();
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"echo\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            give.send(answer).unwrap();
        });
        let (mut stream, peer) = server.accept().unwrap();
        assert_eq!(peer.ip().to_string(), network.address(2));
        let mut request = [0; 5];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    });
    assert_eq!(take.recv().unwrap(), "echo\n");
    assert!(has_interface(interface));
    let addresses = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    assert!(!addresses.contains(interface), "{addresses}");
    supervisor.ask("end", &[]).unwrap();
    assert!(!has_interface(interface));
}

#[test]
fn names_and_networks_in_use_are_refused() {
    let (network, another) = (Network::reserve(), Network::reserve());
    let supervisor = Supervisor::start();
    let used = network.cidr(1, 30);
    supervisor.netns("load", &used, &network.cidr(2, 30)).unwrap();
    let in_use = format!("the network of {} is in use: lp", network.cidr(3, 29));
    for (name, host, peer, expected) in [
        (
            "load",
            another.cidr(1, 30),
            another.cidr(2, 30),
            ["`load` already exists"; 2],
        ),
        (
            "other",
            network.cidr(3, 29),
            network.cidr(2, 29),
            [&in_use, &used],
        ),
        (
            "other",
            another.cidr(1, 30),
            another.cidr(5, 30),
            ["different addresses of the same network"; 2],
        ),
    ] {
        let error = supervisor.netns(name, &host, &peer).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = supervisor
        .try_script("x", &["--netns", "lod"], "true")
        .unwrap_err();
    assert_eq!(error, "no network namespace `lod`; this supervisor has: load");
    assert_eq!(supervisor.status()["netns"].as_array().unwrap().len(), 1);
}

/// The placement of a process after at least `samples` samples, once the condition is true.
fn placement(supervisor: &Supervisor, name: &str, samples: u64, is_so: impl Fn(&Value) -> bool) -> Value {
    until("samples of the placement", || {
        let report = supervisor.ask("wait", &[name, "--for", "100ms"]).unwrap();
        let placement = report["placement"].clone();
        (placement["samples"].as_u64()? >= samples && is_so(&placement)).then_some(placement)
    })
}

#[test]
fn a_pinned_process_is_pinned_before_it_executes() {
    let supervisor = Supervisor::start();
    let script = "grep Cpus_allowed_list /proc/self/status; (while :; do :; done) & while :; do :; done";
    supervisor.run_script("spinner", &["--cpus", "1"], script);
    // The shell and its child, which starts later.
    let placement = placement(&supervisor, "spinner", 2, |placement| placement["threads"] == 2);
    assert_eq!(supervisor.output("spinner"), "Cpus_allowed_list:\t1\n");
    assert_eq!(placement["cpus"], "1");
    assert_eq!(placement["outside_allowed"], 0, "{placement}");
    assert_eq!(placement["outside_ran"], 0, "{placement}");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_child_that_leaves_its_cpus_is_counted() {
    let supervisor = Supervisor::start();
    let script = "sh -c 'taskset -pc 1 $$ > /dev/null; while :; do :; done' & wait";
    supervisor.run_script("spinner", &["--cpus", "0"], script);
    // It leaves the set when taskset has run.
    let placement = placement(&supervisor, "spinner", 3, |placement| {
        placement["outside_allowed"].as_u64() > Some(0) && placement["outside_ran"].as_u64() > Some(0)
    });
    let count = |key: &str| placement[key].as_u64().unwrap();
    // The waiting shell stays in the set.
    assert!(count("outside_allowed") <= count("samples"), "{placement}");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_process_is_sampled_at_once_in_a_pause_after_an_expensive_sample() {
    let supervisor = Supervisor::start();
    let program = "import threading, time; threading.stack_size(65536)
for _ in range(2000): threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
time.sleep(1000)";
    supervisor
        .ask("run", &["crowd", "--cpus", "0-1", "--", "python3", "-c", program])
        .unwrap();
    let crowd = |samples| {
        let placement = placement(&supervisor, "crowd", samples, |placement| {
            placement["threads"].as_u64() > Some(2000)
        });
        placement["samples"].as_u64().unwrap()
    };
    let before = crowd(5); // its own first samples are over
    supervisor.run_script("spinner", &["--cpus", "0"], "sleep 1000");
    placement(&supervisor, "spinner", 5, |_| true);
    assert!(crowd(0) < before + 5);
}
