//! Tests run directories of another user: root finishes and records without following links or
//! blocking on FIFOs.

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

use crate::common::Recorder;
use crate::common::collect;
use crate::common::stderr;
use loadprint_recording::manifest;
use tempfile::TempDir;
use tempfile::tempdir;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// A directory of `nobody`, and a file that only root can read.
struct Sandbox {
    scratch: TempDir,
    secret: PathBuf,
}

impl Sandbox {
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

    /// Runs a shell script as `nobody` in that directory; `$1` is root's file.
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

    /// Root's file is unchanged, and the directory of `nobody` has no copy of it.
    fn assert_kept(&self) {
        assert_eq!(fs::read_to_string(&self.secret).unwrap(), "secret");
        assert_eq!(fs::metadata(&self.secret).unwrap().nlink(), 1);
        assert_eq!(files_with(&self.theirs(), b"secret"), Vec::<PathBuf>::new());
    }
}

/// The regular files in `dir` with this content.
fn files_with(dir: &Path, content: &[u8]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(files_with(&entry.path(), content));
        } else if kind.is_file() && fs::read(entry.path()).unwrap() == content {
            files.push(entry.path());
        }
    }
    files
}

fn finish(run: &Path) -> Output {
    collect(&["finish", run.to_str().unwrap()]).output().unwrap()
}

#[test]
fn finish_does_not_copy_or_remove_the_targets_of_links() {
    let sandbox = Sandbox::new();
    // A link, a link through a directory with a name like the recorder's, a relative link, and a
    // FIFO, which could block.
    sandbox.as_nobody("mkdir -p plain/server named/server relative/server fifo/server journal/server; ln -s \"$1\" plain/server/sysstat.sa");
    sandbox.as_nobody("d=$(pwd)/loadprint-$(stat -c %d-%i named/server | sed 's/.*/x/')-y; mkdir $d; ln -s \"$1\" $d/sysstat.sa; ln -s $d/sysstat.sa named/server/sysstat.sa");
    sandbox.as_nobody(
        "ln -s ../../../secret relative/server/sysstat.sa; mkfifo fifo/server/sysstat.sa fifo/server/x.json",
    );
    sandbox.as_nobody("ln -s \"$1\" journal/server/journal; for run in *; do echo {} >$run/run.json; done");
    for run in ["plain", "named", "relative", "journal"] {
        let output = finish(&sandbox.theirs().join(run));
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{run}: {message}");
        assert!(
            message.contains("a link to ") && message.lines().count() == 1,
            "{run}: {message}"
        );
        sandbox.assert_kept();
    }
    let output = finish(&sandbox.theirs().join("fifo"));
    assert!(output.status.success(), "{}", stderr(&output));
    sandbox.assert_kept();
}

/// The private directory of a link must belong to the user of `finish`, even if its name is
/// correct.
#[test]
fn finish_refuses_a_private_directory_of_another_user() {
    let sandbox = Sandbox::new();
    sandbox.as_nobody(
        "mkdir -p run/server; echo {} >run/run.json; n=$(printf 'loadprint-%x-%x-y' $(stat -c '%d %i' run/server)); \
         mkdir -m 700 $n; ln -s \"$1\" $n/sysstat.sa; ln -s $(pwd)/$n/sysstat.sa run/server/sysstat.sa",
    );
    let output = finish(&sandbox.theirs().join("run"));
    let message = stderr(&output);
    assert!(
        message.contains("in a directory that other users can change"),
        "{message}"
    );
    sandbox.assert_kept();
}

#[test]
fn a_recorder_does_not_write_through_links() {
    let sandbox = Sandbox::new();
    sandbox.as_nobody(
        "mkdir -p run/server; cd run; for name in run.json .run.json.tmp manifest.json .manifest.json.tmp server/.journal.tmp \
         server/journal.new server/fingerprint.json server/.cpu.parquet.tmp server/cpu.parquet server/canary.jsonl \
         server/sysstat.sa; do ln -s \"$1\" $name; done; ln -s \"$1\" ../.run.pid.tmp; ln -s \"$1\" ../run.new",
    );
    let run = sandbox.theirs().join("run");
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
    sandbox.assert_kept();
    for name in [
        "manifest.json",
        "server/fingerprint.json",
        "server/cpu.parquet",
        "server/sysstat.sa",
    ] {
        assert!(fs::symlink_metadata(run.join(name)).unwrap().is_file(), "{name}");
    }
    assert_eq!(manifest::verify(&run).unwrap(), Vec::<String>::new());

    sandbox.as_nobody("mkdir other; ln -s \"$(dirname \"$1\")\" other/server");
    let out = sandbox.theirs().join("other");
    let output = collect(&["record", "--out", out.to_str().unwrap(), "--duration", "100ms"])
        .output()
        .unwrap();
    assert!(
        stderr(&output).contains("other/server: a symbolic link"),
        "{}",
        stderr(&output)
    );
}

/// In a world-writable journal directory such as /dev/shm, journal and sysstat's file are in a new
/// private directory of root.
#[test]
fn files_in_a_shared_journal_directory_are_private() {
    let sandbox = Sandbox::new();
    let shared = sandbox.scratch.path().join("shm");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let run = sandbox.scratch.path().join("run");
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

    // Copied links do not give access to the files of another recording.
    let copied = sandbox.scratch.path().join("copied");
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
