//! Tests start, wait and stop of processes, and the environment of a process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use crate::prelude::*;
use serde_json::json;

#[test]
fn the_report_of_a_failed_process_has_its_stderr() {
    let supervisor = Supervisor::start();
    supervisor.run_script(
        "brief",
        &[],
        "echo out; echo 'cannot open data' >&2; echo 'giving up' >&2; exit 7",
    );
    let report = supervisor.wait("brief");
    assert_eq!((&report["state"], &report["code"]), (&json!("exited"), &json!(7)));
    assert_eq!(report["stderr_tail"], "cannot open data\ngiving up");
    assert_eq!(report["placement"], json!(null));
}

#[test]
fn a_wait_has_a_limit_and_does_not_block_others() {
    let supervisor = Supervisor::start();
    let goal = supervisor.scratch.path().join("go");
    supervisor.run_script(
        "long",
        &[],
        &format!("while [ ! -e {} ]; do sleep 0.01; done", text(&goal)),
    );
    let slice = supervisor.ask("wait", &["long", "--for", "50ms"]).unwrap();
    assert_eq!(slice["state"], "running");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| supervisor.wait("long"));
        // Must be answered during the wait, or the file is never created.
        assert_eq!(supervisor.status()["processes"][0]["state"], "running");
        fs::write(&goal, "").unwrap();
        assert_eq!(waiter.join().unwrap()["code"], 0);
    });
}

#[test]
fn stop_sends_sigterm() {
    let supervisor = Supervisor::start();
    supervisor.run_script(
        "polite",
        &[],
        "trap 'exit 5' TERM; echo $$; while :; do sleep 0.01; done",
    );
    supervisor.printed_pid("polite");
    let report = supervisor.ask("stop", &["polite"]).unwrap();
    assert_eq!((&report["state"], &report["code"]), (&json!("exited"), &json!(5)));
    assert_eq!(supervisor.ask("stop", &["polite"]).unwrap(), report);
}

#[test]
fn a_process_that_does_not_stop_is_killed_with_its_tree() {
    let supervisor = Supervisor::start();
    let script = "trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & while :; do sleep 0.01; done";
    supervisor.run_script("stubborn", &["--stop-timeout", "300ms"], script);
    let grandchild = supervisor.printed_pid("stubborn");
    let report = supervisor.ask("stop", &["stubborn"]).unwrap();
    assert_eq!(
        (&report["state"], &report["signal"]),
        (&json!("signalled"), &json!("KILL"))
    );
    until_dead(grandchild);
}

/// Clock ticks of CPU that a process has used.
fn cpu_ticks(pid: u32) -> u64 {
    let modes = stat_fields(pid, [14, 15]).unwrap();
    modes.iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn until_cpu_grows(pid: u32) {
    let before = cpu_ticks(pid);
    until("CPU time", || (cpu_ticks(pid) > before).then_some(()));
}

#[test]
fn a_frozen_process_uses_no_cpu_with_all_that_it_forked() {
    let supervisor = Supervisor::start();
    let script = "trap 'exit 5' TERM; setsid sh -c 'echo $$; while :; do :; done' & while :; do :; done";
    let pids = ["a", "b"].map(|name| {
        let pid = supervisor.run_script(name, &[], script);
        (pid, supervisor.printed_pid(name))
    });
    let used = || pids.map(|(pid, forked)| (cpu_ticks(pid), cpu_ticks(forked)));
    supervisor.ask("freeze", &["a", "b"]).unwrap();
    let before = used();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(used(), before);
    supervisor.ask("thaw", &["a"]).unwrap();
    until_cpu_grows(pids[0].0);
    until_cpu_grows(pids[0].1);
    assert_eq!(used()[1], before[1]);
    let error = supervisor.ask("freeze", &["c"]).unwrap_err();
    assert_eq!(error, "no process `c`; this supervisor has: a, b");

    // It sees its stop signal; one that is still frozen ends with the supervisor.
    let report = supervisor.ask("stop", &["b"]).unwrap();
    assert_eq!((&report["state"], &report["code"]), (&json!("exited"), &json!(5)));
    // The end of one of them is found by those who ask for it.
    supervisor.ask("freeze", &["a", "b"]).unwrap();
    supervisor.ask("end", &[]).unwrap();
    assert!(
        pids.iter()
            .all(|(pid, forked)| !is_alive(*pid) && !is_alive(*forked))
    );
}

/// The child of a child is in another session and has another parent: it is found by its group.
#[test]
fn nothing_that_a_process_forked_outlives_its_stop() {
    let supervisor = Supervisor::start();
    let options = ["--user", "65534:65534"];
    supervisor.run_script("server", &options, ESCAPE);
    let escaped = supervisor.printed_pid("server");
    let report = supervisor.ask("stop", &["server"]).unwrap();
    assert_eq!(report["signal"], "TERM", "{report}");
    assert!(!is_alive(escaped));

    // One that ends by itself has ended when its children have.
    let script =
        "(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' &); sleep 0.2; exit 3";
    supervisor.run_script("step", &options, script);
    let escaped = supervisor.printed_pid("step");
    assert_eq!(supervisor.wait("step")["code"], 3);
    assert!(!is_alive(escaped));
}

#[test]
fn a_name_may_be_used_again_after_the_end() {
    let supervisor = Supervisor::start();
    let pid = supervisor.run_script("server", &[], "echo first; exec sleep 1000");
    let error = supervisor.ask("run", &["server", "--", "true"]).unwrap_err();
    assert_eq!(
        error,
        format!("process `server` is running (pid {pid}); stop it first")
    );
    until("its output", || {
        (supervisor.output("server") == "first\n").then_some(())
    });
    supervisor.ask("stop", &["server"]).unwrap();
    supervisor.run_script("server", &[], "echo second");
    assert_eq!(supervisor.wait("server")["code"], 0);
    let status = supervisor.status();
    assert_eq!(status["processes"].as_array().unwrap().len(), 1);
    assert_eq!(status["processes"][0]["last_line"], "second");
    assert_eq!(supervisor.output("server"), "second\n");
}

#[test]
fn a_process_inherits_nothing_from_its_caller() {
    let supervisor = Supervisor::start();
    let script = "env; echo fds $(ls /proc/self/fd | wc -w); echo in $(readlink /proc/self/fd/0); umask; \
                  echo session $(ps -o sid= -p $$) $$; cat /proc/self/oom_score_adj";
    supervisor.run_script("inside", &["--env", "LOADPRINT_TEST=a=b"], script);
    supervisor.wait("inside");
    let output = supervisor.output("inside");
    assert!(
        output.contains("LOADPRINT_TEST=a=b\n") && output.contains("PWD=/\n"),
        "{output}"
    );
    assert!(!output.contains("CARGO"), "{output}");
    // 0, 1, 2 and the directory that ls reads.
    assert!(output.contains("\nfds 4\nin /dev/null\n0022\n"), "{output}");
    let session = output
        .lines()
        .find_map(|line| line.strip_prefix("session "))
        .unwrap();
    let (session, pid) = session.split_once(' ').unwrap();
    assert_eq!(session, pid);
    let score = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(output.lines().last(), score.lines().last());
}

#[test]
fn files_are_private_and_contain_no_arguments() {
    let supervisor = Supervisor::start();
    supervisor.run_script("secretive", &["--env", "TOKEN=hunter2"], ": hunter3; true");
    supervisor.wait("secretive");
    until("its status", || {
        let status = fs::read_to_string(supervisor.dir.join("status.json")).unwrap_or_default();
        status.contains("secretive").then_some(())
    });
    assert_eq!(fs::metadata(&supervisor.dir).unwrap().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&supervisor.dir).unwrap() {
        let path = entry.unwrap().path();
        let Ok(about) = fs::metadata(&path) else {
            // The temporary file of a status was renamed meanwhile.
            assert!(path.extension().is_none_or(|end| end != "json"), "{path:?}");
            continue;
        };
        assert_eq!(about.mode() & 0o777 & !0o100, 0o600, "{path:?}");
        if path.extension().is_some_and(|end| end != "sock") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            assert!(!text.contains("hunter"), "{path:?}: {text}");
        }
    }
}

#[test]
fn a_process_in_a_chroot_has_its_user_and_devices() {
    let supervisor = Supervisor::start();
    let root = supervisor.scratch.path().join("root");
    for dir in ["usr", "proc", "dev"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for link in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
    fs::set_permissions(&root, PermissionsExt::from_mode(0o755)).unwrap();
    for (dir, options) in [
        ("usr", &["--bind", "/usr"][..]),
        ("proc", &["--proc"]),
        ("dev", &["--dev"]),
    ] {
        let place = root.join(dir);
        supervisor
            .ask("mount", &[options, &[text(&place)]].concat())
            .unwrap();
    }
    let script = "id -u; id -G; : > /dev/null && : > /dev/shm/x && cat /proc/self/comm";
    let options = ["--chroot", text(&root), "--user", "4321:4322"];
    supervisor.run_script("inside", &options, script);
    let report = supervisor.wait("inside");
    assert_eq!(supervisor.output("inside"), "4321\n4322\ncat\n", "{report}");
}

#[test]
fn a_setuid_process_dies_with_the_daemon_too() {
    let supervisor = Supervisor::start();
    let child = supervisor.run_script("sleeper", &["--user", "65534:65534"], "echo $$; exec sleep 1000");
    supervisor.printed_pid("sleeper");
    stop(supervisor.guard);
    signal(supervisor.pid, rustix::process::Signal::KILL);
    // The guard is stopped, so PDEATHSIG killed the process.
    until_dead(child);
    signal(supervisor.guard, rustix::process::Signal::CONT);
    assert_eq!(supervisor.ended()["ended"], "killed");
}

#[test]
fn two_supervisors_are_independent() {
    let (one, two) = (Supervisor::start(), Supervisor::start());
    let first = one.run_script("server", &[], "exec sleep 1000");
    let second = two.run_script("server", &[], "exec sleep 1000");
    one.ask("end", &[]).unwrap();
    assert!(!is_alive(first) && is_alive(second));
    assert_eq!(two.status()["processes"][0]["state"], "running");
}

#[test]
fn one_of_several_concurrent_starts_succeeds() {
    let scratch = scratch();
    let dir = scratch
        .path()
        .join("a-directory-whose-path-is-too-long-for-a-socket-address".repeat(3));
    let results: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| supervise("start", &dir, &[])))
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1, "{won:?}");
    for error in lost {
        assert!(error.unwrap_err().starts_with("a supervisor runs at "));
    }
    let pid = won[0].as_ref().unwrap()["pid"].clone();
    let error = supervise("start", &dir, &[]).unwrap_err();
    assert!(error.contains(&format!("(pid {pid})")), "{error}");
    assert_eq!(supervise("status", &dir, &[]).unwrap()["pid"], pid);
    assert_eq!(supervise("end", &dir, &[]).unwrap()["was_running"], true);
}

#[test]
fn the_newest_note_is_in_the_status() {
    let supervisor = Supervisor::start();
    supervisor.ask("note", &[r#"{"run": 1, "of": 6}"#]).unwrap();
    let note = supervisor
        .ask("note", &[r#"{"run": 2, "phase": "measure"}"#])
        .unwrap();
    assert_eq!(note, json!({"note": {"run": 2, "phase": "measure"}}));
    until("the note in status.json", || {
        let status: serde_json::Value =
            serde_json::from_slice(&fs::read(supervisor.dir.join("status.json")).ok()?).unwrap();
        (status["note"] == note["note"]).then_some(())
    });
}
