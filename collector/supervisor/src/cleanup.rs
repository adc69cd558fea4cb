//! Removes what a supervisor holds: at its end, by its guard when it was killed, or by the next `start`.
//! Nothing here stops at the first failure; what could not be removed is returned, a line for each.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::openat;
use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

use crate::mounts;
use crate::netns;
use crate::netns::NetNs;
use crate::procfs;
use crate::procfs::ProcessId;
use crate::spawn::TOKEN_VARIABLE;
use crate::state_dir::Holdings;
use crate::state_dir::StateDir;

/// How long killed processes may take to vanish.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Kills what `find` returns until it returns nothing: what they fork meanwhile is found by the next look.
/// `reap` is called between looks.
pub fn kill_all(find: impl Fn() -> Vec<ProcessId>, mut reap: impl FnMut()) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        reap();
        let alive = find();
        if alive.is_empty() {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            return alive
                .iter()
                .map(|id| format!("process {} does not die", id.pid))
                .collect();
        }
        for id in alive {
            id.signal(Signal::KILL);
        }
        thread::sleep(LOOK);
    }
}

/// Removes what a supervisor that was killed has left at a state directory, whose lock the caller holds.
/// What that was; null when it ended in order. `kept` stays whatever owned it.
pub fn remove_what_was_left(dir: &StateDir, kept: &[&Path]) -> Result<Value> {
    let Some(mut holdings) = dir.read_holdings()? else {
        return Ok(Value::Null);
    };
    holdings.owned.retain(|path| !kept.contains(&path.as_path()));
    let left = remove_leftovers(&holdings);
    if !left.is_empty() {
        bail!(
            "an earlier supervisor at {} left: {}",
            dir.path().display(),
            left.join("; ")
        );
    }
    dir.remove("control.sock")
        .and_then(|()| dir.remove("state.json"))
        .context("state.json")?;
    Ok(json!({"pid": holdings.pid, "interfaces": holdings.interfaces, "owned": holdings.owned}))
}

/// Removes everything that a supervisor which was killed has left, its processes included.
pub fn remove_leftovers(holdings: &Holdings) -> Vec<String> {
    let mut left = Vec::new();
    // Pids, start times and interfaces of an earlier boot name nothing, or something else.
    if procfs::boot_id().is_ok_and(|boot| boot == holdings.boot_id) {
        left.extend(kill_all(|| leftover_processes(holdings), || ()));
        left.extend(failures(holdings.interfaces.iter(), |name| {
            netns::remove_interface(name)
        }));
    }
    left.extend(unmount_all(&holdings.mounts));
    left.extend(remove_owned(&holdings.owned));
    left
}

fn leftover_processes(holdings: &Holdings) -> Vec<ProcessId> {
    let mut found: Vec<ProcessId> = holdings
        .processes
        .iter()
        .copied()
        .filter(|process| process.is_alive())
        .collect();
    found.extend(
        found
            .clone()
            .iter()
            .flat_map(|process| procfs::descendants(process.pid)),
    );
    found.extend(procfs::with_environment(TOKEN_VARIABLE, &holdings.token));
    found
}

/// Removes the veth pairs and lets go of the namespaces.
pub fn remove_namespaces(namespaces: Vec<NetNs>) -> Vec<String> {
    failures(namespaces.iter(), NetNs::remove)
}

/// Unmounts in reverse order; what is not mounted in this namespace (any more) is fine.
pub fn unmount_all(mounts: &[PathBuf]) -> Vec<String> {
    let undo = |path: &PathBuf| match mounts::below(path)?.contains(path) {
        true => mounts::undo(path),
        false => Ok(()),
    };
    failures(mounts.iter().rev(), undo)
}

/// Removes owned paths, the newest first; the mounts must have been undone before.
pub fn remove_owned(paths: &[PathBuf]) -> Vec<String> {
    failures(paths.iter().rev(), |path| remove_path(path))
}

fn remove_path(path: &Path) -> Result<()> {
    // A bind mount below would have its *source* emptied.
    if let Some(point) = mounts::below(path)?.first() {
        bail!(
            "{} is not removed: {} is mounted there",
            path.display(),
            point.display()
        );
    }
    let removed = open_without_links(path.parent().unwrap_or(Path::new("/"))).and_then(|parent| {
        let name = path.file_name().unwrap_or_default();
        let path = Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    });
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove {}", path.display())),
    }
}

/// Opens an absolute path, no part of which is a link: since it was resolved somebody may have put one there.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, "/", flags, Mode::empty())?;
    for part in path.components().skip(1) {
        dir = openat(&dir, part, flags, Mode::empty())?;
    }
    Ok(dir)
}

/// The path without links in its directories, as far as they exist.
pub fn resolve(path: &Path) -> PathBuf {
    let real = |dir: &Path| Some(dir.canonicalize().ok()?.join(path.strip_prefix(dir).ok()?));
    path.ancestors()
        .skip(1)
        .find_map(real)
        .unwrap_or_else(|| path.to_owned())
}

/// Checks a path that is to be removed at the end: absolute, plain, deeper than the root's own folders, and with no
/// mount in it but those of this supervisor (`ours`).
pub fn check_owned(path: &Path, ours: &[PathBuf]) -> Result<()> {
    if !path.is_absolute() {
        bail!("{} is not an absolute path", path.display());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        bail!("{} goes up with `..`; write it without", path.display());
    }
    if path.components().count() < 3 {
        bail!(
            "{} is too close to the root to be removed with all below it",
            path.display()
        );
    }
    let foreign = |point: &PathBuf| !ours.iter().any(|mount| point.starts_with(mount));
    if let Some(point) = mounts::below(path)?.into_iter().find(foreign) {
        bail!(
            "{} holds the mount point {}; own what lies beside it",
            path.display(),
            point.display()
        );
    }
    Ok(())
}

fn failures<'a, T: 'a>(
    items: impl Iterator<Item = &'a T>,
    mut action: impl FnMut(&T) -> Result<()>,
) -> Vec<String> {
    let mut left = Vec::new();
    for item in items {
        if let Err(error) = action(item) {
            left.push(format!("{error:#}"));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_that_nobody_means_to_lose_are_refused() {
        for path in ["/", "/srv", "relative/path", "/srv/../etc"] {
            assert!(check_owned(Path::new(path), &[]).is_err(), "{path}");
        }
    }

    #[test]
    fn a_link_is_removed_not_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::create_dir(&target).unwrap();
        fs::write(target.join("file"), "kept").unwrap();
        symlink(&target, &link).unwrap();
        assert_eq!(
            remove_owned(&[link.clone(), dir.path().join("absent")]),
            Vec::<String>::new()
        );
        assert!(target.join("file").exists());
        assert!(fs::symlink_metadata(&link).is_err());

        // A directory above the owned path that has become a link since.
        symlink(&target, &link).unwrap();
        assert_eq!(
            resolve(&link.join("file")),
            target.canonicalize().unwrap().join("file")
        );
        let left = remove_owned(&[link.join("file")]);
        assert!(left[0].contains("Not a directory"), "{left:?}");
        assert!(target.join("file").exists());
    }
}
