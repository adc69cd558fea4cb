//! Run directories that somebody else made: root finishes and records without following their links or waiting at their FIFOs.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use common::Recorder;
use common::collect;
use common::stderr;
use loadprint_recording::manifest;
use tempfile::TempDir;
use tempfile::tempdir;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// A directory of `nobody`, and a file of root's that it cannot read.
struct Place {
    scratch: TempDir,
    secret: PathBuf,
}

impl Place {
    fn new() -> Self {
        let scratch = tempdir().unwrap();
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        let secret = scratch.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let theirs = scratch.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(65534), Some(65534)).unwrap();
        Self { scratch, secret }
    }

    fn theirs(&self) -> PathBuf {
        self.scratch.path().join("theirs")
    }

    /// Runs a shell script as `nobody` in its directory; `$1` is the file of root's.
    fn as_nobody(&self, script: &str) {
        let status = Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
            ])
            .args(["sh", "-ec", script, "sh"])
            .arg(&self.secret)
            .current_dir(self.theirs())
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
    }

    /// It is whole, and nothing below the directory of nobody has it.
    fn assert_kept(&self) {
        assert_eq!(fs::read_to_string(&self.secret).unwrap(), "secret");
        assert_eq!(fs::metadata(&self.secret).unwrap().nlink(), 1);
        assert_eq!(holding(&self.theirs(), b"secret"), Vec::<PathBuf>::new());
    }
}

/// Regular files below `dir` of this content.
fn holding(dir: &Path, content: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&entry.path(), content));
        } else if kind.is_file() && fs::read(entry.path()).unwrap() == content {
            found.push(entry.path());
        }
    }
    found
}

fn finish(run: &Path) -> Output {
    collect(&["finish", run.to_str().unwrap()]).output().unwrap()
}

#[test]
fn finish_neither_copies_nor_removes_what_a_received_recording_links_to() {
    let place = Place::new();
    // A link, a link by way of a directory with a name of the recorder's kind, a relative link, and a FIFO, which would block.
    place.as_nobody("mkdir -p plain/server named/server relative/server fifo/server journal/server; ln -s \"$1\" plain/server/sysstat.sa");
    place.as_nobody("d=$(pwd)/loadprint-$(stat -c %d-%i named/server | sed 's/.*/x/')-y; mkdir $d; ln -s \"$1\" $d/sysstat.sa; ln -s $d/sysstat.sa named/server/sysstat.sa");
    place.as_nobody(
        "ln -s ../../../secret relative/server/sysstat.sa; mkfifo fifo/server/sysstat.sa fifo/server/x.json",
    );
    place.as_nobody("ln -s \"$1\" journal/server/journal; for run in *; do echo {} >$run/run.json; done");
    for run in ["plain", "named", "relative", "journal"] {
        let output = finish(&place.theirs().join(run));
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{run}: {message}");
        assert!(
            message.contains("a link to ") && message.lines().count() == 1,
            "{run}: {message}"
        );
        place.assert_kept();
    }
    let output = finish(&place.theirs().join("fifo"));
    assert!(output.status.success(), "{}", stderr(&output));
    place.assert_kept();
}

/// The private directory that a link names must be of the user who finishes, even if its name fits.
#[test]
fn finish_takes_nothing_from_a_directory_that_another_user_made_for_it() {
    let place = Place::new();
    place.as_nobody(
        "mkdir -p run/server; echo {} >run/run.json; n=$(printf 'loadprint-%x-%x-y' $(stat -c '%d %i' run/server)); \
         mkdir -m 700 $n; ln -s \"$1\" $n/sysstat.sa; ln -s $(pwd)/$n/sysstat.sa run/server/sysstat.sa",
    );
    let output = finish(&place.theirs().join("run"));
    let message = stderr(&output);
    assert!(
        message.contains("in a directory that other users can change"),
        "{message}"
    );
    place.assert_kept();
}

#[test]
fn a_recorder_writes_through_no_link_that_waits_for_it() {
    let place = Place::new();
    place.as_nobody(
        "mkdir -p run/server; cd run; for name in run.json .run.json.tmp manifest.json .manifest.json.tmp server/.journal.tmp \
         server/journal.new server/fingerprint.json server/.cpu.parquet.tmp server/cpu.parquet server/canary.jsonl \
         server/sysstat.sa; do ln -s \"$1\" $name; done; ln -s \"$1\" ../.run.pid.tmp; ln -s \"$1\" ../run.new",
    );
    let run = place.theirs().join("run");
    let canary = [
        "canary",
        "--out",
        run.join("server/canary.jsonl").to_str().unwrap(),
    ]
    .map(str::to_owned);
    let output = collect(&canary.each_ref().map(String::as_str)).output().unwrap();
    assert!(
        stderr(&output).contains("canary.jsonl: a symbolic link"),
        "{}",
        stderr(&output)
    );
    fs::remove_file(run.join("server/canary.jsonl")).unwrap();
    let recorder = Recorder::start(&run, &["--interval", "20ms", "--probes", "cpu", "--with-sysstat"]);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    place.assert_kept();
    for name in [
        "manifest.json",
        "server/fingerprint.json",
        "server/cpu.parquet",
        "server/sysstat.sa",
    ] {
        assert!(fs::symlink_metadata(run.join(name)).unwrap().is_file(), "{name}");
    }
    assert_eq!(manifest::verify(&run).unwrap(), Vec::<String>::new());

    place.as_nobody("mkdir other; ln -s \"$(dirname \"$1\")\" other/server");
    let out = place.theirs().join("other");
    let output = collect(&["record", "--out", out.to_str().unwrap(), "--duration", "100ms"])
        .output()
        .unwrap();
    assert!(
        stderr(&output).contains("other/server: a symbolic link"),
        "{}",
        stderr(&output)
    );
}

/// The journal and sysstat's file in a directory that everybody writes, as /dev/shm: in a new directory that only root enters.
#[test]
fn a_shared_journal_directory_shows_nothing_and_takes_nothing() {
    let place = Place::new();
    let shared = place.scratch.path().join("shm");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let run = place.scratch.path().join("run");
    let arguments = [
        "--interval",
        "20ms",
        "--probes",
        "cpu",
        "--with-sysstat",
        "--journal-dir",
        shared.to_str().unwrap(),
    ];
    let recorder = Recorder::start(&run, &arguments);
    let made: Vec<_> = fs::read_dir(&shared)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
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

    // Whoever copies the links of a recording cannot have another one's files.
    let copied = place.scratch.path().join("copied");
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
