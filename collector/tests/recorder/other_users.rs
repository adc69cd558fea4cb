//! Tests run directories and outputs that another user can change: root refuses them, and writes
//! through no link.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::process::Command;

use crate::prelude::*;
use rustix::process::Signal;
use tempfile::tempdir;

/// `nobody` plants links to a file of root, and a FIFO, which could block.
#[test]
fn root_refuses_a_directory_of_another_user_and_follows_no_link() {
    let scratch = tempdir().unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
    let (secret, theirs) = (scratch.path().join("secret"), scratch.path().join("theirs"));
    fs::write(&secret, "secret").unwrap();
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    let script = "mkdir -p run/server; cd run; echo {} >run.json; mkfifo server/x.json; \
        for name in .run.json.tmp manifest.json server/journal server/cpu.parquet \
        server/canary.jsonl; do ln -s \"$1\" $name; done";
    let mut command = Command::new("setpriv");
    command.args("--reuid=65534 --regid=65534 --clear-groups --inh-caps=-all".split(' '));
    command.args(["sh", "-ec", script, "sh"]).arg(&secret);
    assert!(command.current_dir(&theirs).status().unwrap().success());

    let dir = theirs.display();
    let changeable = "other users can change it";
    for (words, expected) in [
        (format!("finish {dir}/run"), changeable),
        (format!("record --out {dir}/run --role load"), changeable),
        (format!("record --out {dir}/new"), changeable),
        (
            format!("canary --out {dir}/run/server/canary.jsonl"),
            "Too many levels of symbolic links",
        ),
    ] {
        refused(&words, expected);
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    let copies = fs::read_dir(theirs.join("run/server")).unwrap();
    let is_file = |entry: fs::DirEntry| entry.file_type().unwrap().is_file();
    assert!(!copies.map(Result::unwrap).any(is_file));
}

/// In a world-writable journal directory such as /dev/shm, the journal is in a new private directory of root.
#[test]
fn the_journal_in_a_shared_directory_is_private() {
    let scratch = tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let (shared, run) = (path("shm"), path("run"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let words = "--interval 20ms --probes cpu --journal-dir";
    let recorder = Recorder::start(&run, &format!("{words} {}", shared.display()));
    let [private] = &names(&shared)[..] else {
        unreachable!("{:?}", names(&shared));
    };
    let private = shared.join(private);
    let meta = fs::symlink_metadata(&private).unwrap();
    assert!(meta.is_dir() && meta.mode() & 0o777 == 0o700 && meta.uid() == 0);
    let target = fs::read_link(run.join("server/journal")).unwrap();
    assert_eq!(target.parent(), Some(&*private));
    recorder.signal(Signal::KILL);
    recorder.wait();

    succeed(&format!("finish {}", run.display()));
    assert_eq!(names(&shared), Vec::<String>::new());
}

/// The group of the user of sudo can have other members, and so can the program's.
#[test]
fn root_refuses_a_directory_that_the_group_of_sudo_can_change() {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(4711), Some(4712)).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o775)).unwrap();
    let words = format!(
        "record --duration 1ms --probes cpu --out {}",
        shared.join("run").display()
    );
    let record = || {
        let mut command = collect(&words);
        command.env("SUDO_UID", "4711").env("SUDO_GID", "4712");
        stderr(&command.output().unwrap())
    };
    let fix = format!("run `chmod go-w {}`", shared.display());
    let error = record();
    assert!(error.contains(&fix), "{error}");
    assert_eq!(names(&shared), Vec::<String>::new());
    fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
    let summary = record();
    assert!(summary.contains("full duration"), "{summary}");
}

#[test]
fn a_run_directory_of_the_user_of_sudo_is_finished() {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let run = dir.path().join("run");
    fs::create_dir_all(run.join("load")).unwrap();
    let result = run.join("load/result.json");
    fs::write(&result, "{}").unwrap();
    fs::set_permissions(&result, Permissions::from_mode(0o600)).unwrap();
    for path in [&run, &run.join("load"), &result] {
        chown(path, Some(4711), Some(4711)).unwrap();
    }
    let mut command = collect("record --interval 20ms");
    let recorder = Recorder::launch(command.env("SUDO_UID", "4711"), &run);
    recorder.stop();
    assert_manifest(&run);
    let probes = column(run.join("server/ticks.parquet"), "probe");
    assert!(probes.contains(&"cpu".to_owned()), "{probes:?}");
}
