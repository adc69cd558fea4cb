//! Tests run directories and outputs that another user can change: root refuses them, and writes
//! through no link.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::process::Output;

use crate::common::Recorder;
use crate::common::collect;
use crate::common::stderr;
use tempfile::tempdir;

const KILL: i32 = 9;

fn finish(run: &Path) -> Output {
    collect(&["finish", run.to_str().unwrap()]).output().unwrap()
}

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
        for name in .run.json.tmp manifest.json server/sysstat.sa server/journal server/cpu.parquet \
        server/canary.jsonl; do ln -s \"$1\" $name; done";
    let status = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .args(["sh", "-ec", script, "sh"])
        .arg(&secret)
        .current_dir(&theirs)
        .status()
        .unwrap();
    assert!(status.success());

    let path = |name: &str| theirs.join(name).to_str().unwrap().to_owned();
    let (run, new, canary) = (path("run"), path("new"), path("run/server/canary.jsonl"));
    for (arguments, expected) in [
        (vec!["finish", &run], "other users can change it"),
        (
            vec!["record", "--out", &run, "--role", "load"],
            "other users can change it",
        ),
        (vec!["record", "--out", &new], "other users can change it"),
        (
            vec!["canary", "--out", &canary],
            "Too many levels of symbolic links",
        ),
    ] {
        let output = collect(&arguments).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    let copies = fs::read_dir(theirs.join("run/server")).unwrap();
    let is_file = |entry: fs::DirEntry| entry.file_type().unwrap().is_file();
    assert!(!copies.map(Result::unwrap).any(is_file));
}

/// In a world-writable journal directory such as /dev/shm, journal and sysstat's file are in a new
/// private directory of root.
#[test]
fn files_in_a_shared_journal_directory_are_private() {
    let scratch = tempdir().unwrap();
    let shared = scratch.path().join("shm");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let run = scratch.path().join("run");
    let options = [
        "--interval",
        "20ms",
        "--probes",
        "cpu",
        "--with-sysstat",
        "--journal-dir",
    ];
    let recorder = Recorder::start(&run, &[&options[..], &[shared.to_str().unwrap()]].concat());
    let made = fs::read_dir(&shared).unwrap().map(|entry| entry.unwrap().path());
    let made: Vec<_> = made.collect();
    assert_eq!(made.len(), 1);
    let meta = fs::symlink_metadata(&made[0]).unwrap();
    assert!(meta.is_dir() && meta.mode() & 0o777 == 0o700 && meta.uid() == 0);
    for name in ["journal", "sysstat.sa"] {
        assert_eq!(
            fs::read_link(run.join("server").join(name)).unwrap(),
            made[0].join(name)
        );
    }
    recorder.signal(KILL);
    recorder.wait();

    // Copied links do not give access to the files of another recording.
    let copied = scratch.path().join("copied");
    fs::create_dir_all(copied.join("server")).unwrap();
    for name in ["journal", "sysstat.sa"] {
        symlink(made[0].join(name), copied.join("server").join(name)).unwrap();
    }
    let message = stderr(&finish(&copied));
    assert!(
        message.contains("which no recorder created for this directory"),
        "{message}"
    );
    let output = finish(&run);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(run.join("server/sysstat.sa").metadata().unwrap().len() > 0);
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
}
