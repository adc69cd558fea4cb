//! Tests attacks by an unprivileged user: links, directories, FIFOs and files in place of the
//! supervisor's files.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::prelude::*;
use serde_json::json;
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// Runs a shell script as `nobody`, `$1` being `place`.
fn run_as_nobody(place: &Path, script: &str) {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
    ]);
    command.args(["sh", "-c", script, "sh", text(place)]);
    assert!(command.status().unwrap().success(), "{script}");
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A world-writable directory like /dev/shm, and a directory with files of root.
struct Shared {
    scratch: TempDir,
    dir: PathBuf,
    file: PathBuf,
    tree: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let scratch = scratch();
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        let dir = scratch.path().join("shared");
        create_dir(&dir, 0o1777);
        let secret = scratch.path().join("secret");
        fs::create_dir(&secret).unwrap();
        let (file, tree) = (secret.join("file"), secret.join("tree"));
        fs::write(&file, "secret").unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("file"), "secret").unwrap();
        for (path, mode) in [(&file, 0o600), (&tree, 0o700), (&secret, 0o700)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        Self {
            scratch,
            dir,
            file,
            tree,
        }
    }

    fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.file).unwrap(), "secret");
        assert_eq!(fs::read_to_string(self.tree.join("file")).unwrap(), "secret");
    }

    /// A forged state.json of an earlier supervisor.
    fn forged(&self) -> String {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        json!({
            "boot_id": boot.trim(), "group": "", "pid": 1, "mounts": [], "interfaces": [], "owned": [self.tree],
        })
        .to_string()
    }
}

/// A shell command that creates a state directory at `$1` with a link to root's file and a forged
/// state.
fn plant(shared: &Shared) -> String {
    format!(
        "mkdir -m 777 \"$1\" && ln -s {} \"$1/.status.json.new\" && printf %s '{}' >\"$1/state.json\"",
        text(&shared.file),
        shared.forged()
    )
}

#[test]
fn a_state_directory_that_another_user_can_create_or_replace_is_refused() {
    let shared = Shared::new();
    let (direct, parent) = (shared.dir.join("direct"), shared.dir.join("loadprint"));
    run_as_nobody(&direct, &plant(&shared));
    run_as_nobody(&parent, "mkdir -m 755 \"$1\"");
    run_as_nobody(&parent.join("state"), &plant(&shared));
    // In it the supervisor would create the state directory.
    let empty = shared.dir.join("empty");
    run_as_nobody(&empty, "mkdir -m 755 \"$1\"");
    // A private directory of root in a world-writable one.
    let own = shared.dir.join("own");
    create_dir(&own, 0o700);
    // A link of `nobody` to a safe directory.
    let link = shared.dir.join("link");
    run_as_nobody(&link, &format!("ln -s {} \"$1\"", text(&shared.tree)));
    for dir in [
        &direct,
        &parent.join("state"),
        &empty.join("state"),
        &own,
        &link.join("state"),
    ] {
        for verb in ["start", "end", "status"] {
            let error = supervise(verb, dir, &[]).unwrap_err();
            assert!(error.contains(": other users can change it"), "{verb}: {error}");
            assert!(error.contains("choose a directory"), "{error}");
        }
    }
    // In a safe directory, but of another owner, a link, or a FIFO.
    let safe = shared.scratch.path().join("safe");
    fs::create_dir(&safe).unwrap();
    create_dir(&safe.join("theirs"), 0o700);
    chown(safe.join("theirs"), Some(NOBODY), None).unwrap();
    symlink(&direct, safe.join("link")).unwrap();
    mkfifo(&safe.join("fifo"));
    for (name, expected) in [
        ("theirs", "is accessible to other users (mode 0700, uid 65534)"),
        ("link", "is not a directory"),
        ("fifo", "is not a directory"),
    ] {
        let error = supervise("start", &safe.join(name), &[]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    shared.assert_untouched();
    assert!(!shared.tree.join("state").exists() && !empty.join("state").exists());
}

/// Files in a safe directory are checked as well: files that are not regular files of root are
/// refused.
#[test]
fn links_and_fifos_in_the_state_directory_are_not_opened() {
    let shared = Shared::new();
    let dir = shared.scratch.path().join("state");
    for name in ["state.json", "lock", "supervisor.log"] {
        for kind in ["ln -s", "mkfifo", "file of another user"] {
            create_dir(&dir, 0o700);
            let path = dir.join(name);
            match kind {
                "ln -s" => symlink(&shared.file, &path).unwrap(),
                "mkfifo" => mkfifo(&path),
                _ => {
                    fs::write(&path, shared.forged()).unwrap();
                    chown(&path, Some(NOBODY), None).unwrap();
                }
            }
            let error = supervise("start", &dir, &[]).unwrap_err();
            assert!(error.contains(name), "{kind}: {error}");
            shared.assert_untouched();
            fs::remove_dir_all(&dir).unwrap();
        }
    }
}

#[test]
fn output_is_not_written_through_links_of_another_user() {
    let shared = Shared::new();
    let supervisor = Supervisor::start();
    let account = shared.dir.join("account");
    run_as_nobody(&account, "mkdir \"$1\"");
    let [link, fifo, hard] = ["link", "fifo", "hard"].map(|name| account.join(name));
    run_as_nobody(&link, &format!("ln -s {} \"$1\"", text(&shared.file)));
    run_as_nobody(&fifo, "mkfifo \"$1\"");
    fs::hard_link(&shared.file, &hard).unwrap();
    for (path, expected) in [
        (&link, "symbolic link"),
        (&fifo, "not a regular file without hard links"),
        (&hard, "not a regular file without hard links"),
    ] {
        let error = supervisor.ask("run", &["x", "--stderr", text(path), "--", "echo", "planted"]);
        assert!(error.as_ref().unwrap_err().contains(expected), "{error:?}");
    }
    shared.assert_untouched();
}

#[test]
fn an_owned_path_is_not_removed_through_an_inserted_link() {
    let shared = Shared::new();
    let supervisor = Supervisor::start();
    let theirs = shared.dir.join("theirs");
    run_as_nobody(&theirs, "mkdir -p \"$1/tree\"");
    supervisor.ask("own", &[text(&theirs.join("tree"))]).unwrap();
    let secret = shared.tree.parent().unwrap();
    run_as_nobody(&theirs, &format!("rm -r \"$1\" && ln -s {} \"$1\"", text(secret)));
    let error = supervisor.ask("end", &[]).unwrap_err();
    assert!(error.contains("theirs/tree: Not a directory"), "{error}");
    shared.assert_untouched();
}

/// In playbooks a supervisor owns its state directory. Both this and its parent are removed at the
/// end, also after a kill.
#[test]
fn an_owned_state_directory_is_removed_and_can_be_created_again() {
    let scratch = scratch();
    let dir = scratch.path().join("loadprint/execution");
    let start = || supervise("start", &dir, &["--lease", "600s"]).unwrap();
    let parent = dir.parent().unwrap();
    let ready = start();
    assert_eq!(fs::metadata(parent).unwrap().mode() & 0o777, 0o700);
    supervise("own", &dir, &[text(&dir)]).unwrap();
    supervise("end", &dir, &[]).unwrap();
    assert!(!parent.exists());
    assert!(!is_alive(number(&ready["pid"])));

    let daemon = number(&start()["pid"]);
    let guard = parent_of(daemon);
    supervise("own", &dir, &[text(&dir)]).unwrap();
    stop(daemon);
    for pid in [guard, daemon] {
        signal(pid, rustix::process::Signal::KILL);
        until_dead(pid);
    }
    start();
    supervise("own", &dir, &[text(&dir)]).unwrap();
    supervise("end", &dir, &[]).unwrap();
    assert!(!parent.exists());
}
