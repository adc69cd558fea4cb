//! Tests the eBPF probes without privileges, with limits, and their own cost.

use std::env;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::prelude::*;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::getppid;
use rustix::process::kill_process;
use serde_json::Value;
use tempfile::tempdir;

/// Those that are not in the standard set.
const BY_NAME: &str = "ebpf_sched,ebpf_block,ebpf_block_size,ebpf_irq,ebpf_tcp";

/// The eBPF probes in the output of `probes` with further options, run by the command `prefix` from
/// a directory that every user can read.
fn listed(prefix: &str, options: &str) -> Vec<Value> {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = dir.path().join("loadprint-collect");
    copy(PROGRAM, &binary);
    let mut command = Command::new("env");
    command.args(prefix.split_whitespace()).arg(&binary);
    command.args("probes --format json --process server=1".split(' '));
    let output = command.args(options.split_whitespace()).output().unwrap();
    let mut list: Vec<Value> = serde_json::from_str(&succeeded(&output)).unwrap();
    list.retain(|probe| {
        let name = probe["name"].as_str().unwrap();
        name.starts_with("ebpf_") || name == "profile"
    });
    list
}

fn named<'a>(list: &'a [Value], name: &Value) -> &'a Value {
    list.iter().find(|probe| probe["name"] == *name).unwrap()
}

/// The names of the running probes.
fn running(list: Vec<Value>) -> Vec<Value> {
    let running = list.into_iter().filter(|probe| probe["status"] == "running");
    running.map(|probe| probe["name"].clone()).collect()
}

/// Asserts that the probe is unavailable for a reason of one line with all of these words.
fn assert_unavailable(probe: &Value, words: &[&str]) {
    let reason = probe["reason"].as_str().unwrap_or_default();
    assert_eq!(probe["status"], "unavailable", "{probe}");
    assert!(words.iter().all(|word| reason.contains(word)), "{probe}");
    assert_eq!(reason.lines().count(), 1, "{probe}");
}

/// Probes share roles and programs, which the first of them creates; `ebpf_programs` reports
/// on the programs of the others.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn each_probe_runs_without_the_others() {
    for name in running(listed("", &format!("--with {BY_NAME}")))
        .iter()
        .filter(|name| *name != "ebpf_programs")
    {
        let alone = listed("", &format!("--probes {}", name.as_str().unwrap()));
        assert!(running(alone).contains(name), "{name}");
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn unprivileged_users_get_a_reason_with_the_fix() {
    let prefix = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let probes = listed(prefix, &format!("--with {BY_NAME}"));
    let wanted: Vec<_> = probes.iter().filter(|probe| probe["status"] != "off").collect();
    assert!(wanted.len() > 5, "{probes:?}");
    for probe in wanted {
        assert_unavailable(probe, &["CAP_BPF"]);
    }
}

/// Linux 5.11 and later charge maps to the control group, not to the limit on locked memory
/// (RLIMIT_MEMLOCK).
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn no_locked_memory_is_needed() {
    let with = running(listed("", ""));
    for name in ["ebpf_switches", "profile"] {
        assert!(with.contains(&name.into()), "{with:?}");
    }
    assert_eq!(running(listed("prlimit --memlock=0:0", "")), with);
}

/// Each program, map and event needs a descriptor: which one is refused depends on the limit.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn without_free_descriptors_the_fix_is_their_limit() {
    let mut refused = 0;
    for limit in 32..60 {
        for probe in listed(&format!("prlimit --nofile={limit}:{limit}"), "") {
            if probe["status"] == "unavailable" {
                refused += 1;
                assert_unavailable(&probe, &["ulimit -n"]);
            }
        }
    }
    assert!(refused > 2, "{refused}");
}

/// Loading programs needs CAP_BPF and CAP_PERFMON; measuring their run time (BPF_ENABLE_STATS)
/// needs CAP_SYS_ADMIN.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn without_cap_sys_admin_programs_run_and_their_times_are_unavailable() {
    let capabilities = "-all,+bpf,+perfmon,+dac_read_search,+sys_resource";
    let probes = listed(&format!("setpriv --bounding-set {capabilities}"), "");
    for name in ["ebpf_switches", "profile"] {
        assert_eq!(named(&probes, &name.into())["status"], "running", "{probes:?}");
    }
    let programs = named(&probes, &"ebpf_programs".into());
    assert_unavailable(programs, &["BPF_ENABLE_STATS", "CAP_SYS_ADMIN"]);
}

/// Records this process under the role `load`.
fn record_this_process(run: &Path, words: &str) -> Recorder {
    Recorder::start(run, &format!("{words} --process load={}", std::process::id()))
}

/// Does system calls for a second.
fn work() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        let _ = getppid();
    }
}

/// Frames have no names then; samples, tables and manifest are as usual.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn recording_is_whole_when_the_helper_that_reads_symbols_is_killed() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let recorder = record_this_process(&run, "--interval 50ms --probes profile");
    let pid = recorder.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let helper = children.trim().parse().unwrap();
    work();
    kill_process(Pid::from_raw(helper).unwrap(), Signal::KILL).unwrap();
    work();
    recorder.stop();
    assert_manifest(&run);
    let stacks = json(run.join("server/stacks.json"));
    let frames = stacks["frames"].as_array().unwrap();
    let names: Vec<_> = frames.iter().filter_map(|frame| frame[1].as_str()).collect();
    let program = env::current_exe().unwrap();
    let by_address = format!("{}+0x", program.file_name().unwrap().display());
    let has = |fits: &dyn Fn(&str) -> bool| names.iter().any(|name| fits(name));
    assert!(has(&|name| name.starts_with(&by_address)), "{names:?}");
    assert!(has(&|name| name.ends_with("sys_getppid")), "{names:?}");
}
