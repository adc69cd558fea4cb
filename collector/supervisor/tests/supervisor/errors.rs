//! Tests the errors: each is one line with the place and the fix, and exit status 2 (checked by
//! `supervise`).

use std::fs;

use crate::prelude::*;

/// Command lines without `--state`, and text in their errors.
const MISTAKES: &[(&str, &str)] = &[
    ("wait sever", "no process `sever`; this supervisor has: server"),
    ("stop load", "no process `load`; this supervisor has: server"),
    (
        "run x -- /no/such",
        "cannot start `x`: program not found: /no/such (or its interpreter)",
    ),
    (
        "run x -- /etc",
        "cannot start `x`: cannot execute /etc: Permission denied (os error 13)",
    ),
    (
        "run x --cpus 0,99 -- true",
        "CPU list 0,99: this host has no CPU 99 (online: ",
    ),
    ("run x --cpus 0;1 -- true", "CPU list `0;1` is not like 0-3,8"),
    (
        "run x --memory-nodes 0,7 -- true",
        "memory nodes 0,7: this host has no node 7 with memory (nodes with memory: 0",
    ),
    (
        "run x --memory-nodes first -- true",
        "memory node list `first` is not like 0-1,3",
    ),
    (
        "irqs --cpus 0 no_such_device",
        "no block device and no network interface `no_such_device`",
    ),
    ("irqs --cpus 0 lo", "lo has no interrupts: it is a virtual device"),
    ("irqs --cpus 0,99 lo", "CPU list 0,99: this host has no CPU 99"),
    (
        "run x --user mysql -- true",
        "--user mysql: write two numbers, like 998:998",
    ),
    (
        "run x --chroot /nowhere -- true",
        "--chroot /nowhere: No such file",
    ),
    (
        "run x --stderr /nowhere/f -- true",
        "--stderr /nowhere/f: No such file",
    ),
    ("run ../x -- true", "name `../x` must have"),
    ("run x --env hunter2 -- true", "--env number 1 is not KEY=VALUE"),
    (
        "run x --netns load -- true",
        "no network namespace `load`: this supervisor has none",
    ),
    (
        "mount --proc /nowhere",
        "mount point /nowhere must exist, create it first: No such file",
    ),
    (
        "mount --bind /etc/passwd /usr",
        "must be both directories or both files",
    ),
    (
        "own /srv",
        "/srv is too close to the root directory to be removed",
    ),
    ("own /srv/x/../../etc", "contains `..`"),
    ("own srv/x", "srv/x is not an absolute path"),
    ("note [1]", "a note is a JSON object"),
    ("note {", "the note is not JSON"),
    (
        "netns n --host-address 198.18.0.1 --peer-address x",
        "is not like 198.18.0.1/30",
    ),
];

#[test]
fn commands_report_mistakes() {
    let supervisor = Supervisor::start();
    supervisor.run_script("server", &[], "exec sleep 1000");
    for (line, expected) in MISTAKES {
        let (verb, arguments) = line.split_once(' ').unwrap();
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let error = supervisor.ask(verb, &arguments).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    let status = supervisor.status();
    assert_eq!(status["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn commands_report_a_missing_supervisor() {
    let scratch = scratch();
    let dir = scratch.path().join("state");
    for arguments in [
        &["wait", "x"][..],
        &["stop", "x"],
        &["status"],
        &["own", "/a/b"],
        &["note", "{}"],
    ] {
        let error = supervise(arguments[0], &dir, &arguments[1..]).unwrap_err();
        assert!(
            error.starts_with(&format!(
                "no supervisor at {} (none was started, or its lease expired",
                dir.display()
            )),
            "{error}"
        );
    }
}

#[test]
fn start_reports_mistakes() {
    let scratch = scratch();
    let open = scratch.path().join("open");
    create_dir(&open, 0o755);
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let damaged = scratch.path().join("damaged");
    create_dir(&damaged, 0o700);
    fs::write(damaged.join("state.json"), "{\"boot_id\":").unwrap();
    let fresh = scratch.path().join("fresh");
    for (dir, arguments, expected) in [
        (&open, &[][..], "is accessible to other users (mode 0755"),
        (&file, &[], "is not a directory"),
        (&damaged, &[], "state.json is damaged"),
        (
            &fresh,
            &["--controller-pid", "4194305"],
            "--controller-pid 4194305: no such process",
        ),
        (&fresh, &["--lease", "10ms"], "--lease must be at least 1s"),
    ] {
        let error = supervise("start", dir, arguments).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
