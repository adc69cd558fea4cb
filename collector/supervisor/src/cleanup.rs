//! Removes the resources of a supervisor: at its end, by its guard after a kill, or by the next
//! `start`. A failure does not stop the cleanup; each function returns one line per resource that
//! it could not remove.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_recording::clock;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::openat;
use serde_json::Value;
use serde_json::json;

use crate::groups::Group;
use crate::interrupts;
use crate::mounts;
use crate::netns;
use crate::state_dir::OwnedResources;
use crate::state_dir::StateDir;

/// Removes the resources that a killed supervisor left, by the state.json of `dir`, whose lock the
/// caller holds, in a private mount namespace. Returns a description of them, or null after a normal end. Does not remove the
/// paths in `kept`.
pub fn remove_by_state(dir: &StateDir, kept: &[&Path]) -> Result<Value> {
    let Some(mut resources) = dir.read_resources()? else {
        return Ok(Value::Null);
    };
    resources.owned.retain(|path| !kept.contains(&path.as_path()));
    let mut left = end_group(&resources);
    left.extend(remove_resources(&resources));
    if !left.is_empty() {
        bail!(
            "cannot remove resources of an earlier supervisor at {}: {}",
            dir.path().display(),
            left.join("; ")
        );
    }
    dir.remove("control.sock")
        .and_then(|()| dir.remove("state.json"))
        .context("state.json")?;
    Ok(json!({"pid": resources.pid, "interfaces": resources.interfaces, "owned": resources.owned}))
}

/// Ends the processes of a killed supervisor.
fn end_group(resources: &OwnedResources) -> Vec<String> {
    if !is_of_this_boot(resources) {
        return Vec::new();
    }
    match Group::open(&resources.group) {
        Ok(group) => group.and_then(|group| group.end(|| ())).into_iter().collect(),
        Err(error) => vec![format!("{error:#}")],
    }
}

/// After a reboot, groups, interrupts and interface names may belong to others.
fn is_of_this_boot(resources: &OwnedResources) -> bool {
    clock::boot_id().is_ok_and(|boot| boot == resources.boot_id)
}

/// Removes all resources of a supervisor whose processes have ended.
pub fn remove_resources(resources: &OwnedResources) -> Vec<String> {
    let mut left = Vec::new();
    if is_of_this_boot(resources) {
        left.extend(failures(resources.interfaces.iter(), |name| {
            netns::remove_interface(name)
        }));
        left.extend(failures(resources.interrupts.iter(), |each| {
            interrupts::restore(Path::new(interrupts::PROC), each)
        }));
    }
    // Ignores paths that are not mounted in this namespace.
    let undo = |path: &PathBuf| match mounts::below(path)?.contains(path) {
        true => mounts::undo(path),
        false => Ok(()),
    };
    left.extend(failures(resources.mounts.iter().rev(), undo));
    left.extend(remove_owned(&resources.owned));
    left
}

/// Removes owned paths, the newest first, after all mounts are undone.
fn remove_owned(paths: &[PathBuf]) -> Vec<String> {
    failures(paths.iter().rev(), |path| remove_path(path))
}

fn remove_path(path: &Path) -> Result<()> {
    // Removing files below a bind mount would remove those of its *source*.
    if let Some(point) = mounts::below(path)?.first() {
        bail!(
            "{} is not removed: {} is a mount point",
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

/// Opens an absolute path without following links: another user may have inserted one since the
/// path was resolved.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, "/", flags, Mode::empty())?;
    for part in path.components().skip(1) {
        dir = openat(&dir, part, flags, Mode::empty())?;
    }
    Ok(dir)
}

/// Resolves links in the path's existing directories.
pub fn resolve(path: &Path) -> PathBuf {
    let real = |dir: &Path| Some(dir.canonicalize().ok()?.join(path.strip_prefix(dir).ok()?));
    path.ancestors()
        .skip(1)
        .find_map(real)
        .unwrap_or_else(|| path.to_owned())
}

/// Checks a path for removal at the end: it must be absolute, without `..`, not directly in the
/// root directory, and without mount points other than those of this supervisor (`ours`).
pub fn check_owned(path: &Path, ours: &[PathBuf]) -> Result<()> {
    if !path.is_absolute() {
        bail!("{} is not an absolute path", path.display());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        bail!("{} contains `..`; write the path without it", path.display());
    }
    if path.components().count() < 3 {
        bail!(
            "{} is too close to the root directory to be removed with its contents; own a directory in it",
            path.display()
        );
    }
    let foreign = |point: &PathBuf| !ours.iter().any(|mount| point.starts_with(mount));
    if let Some(point) = mounts::below(path)?.into_iter().find(foreign) {
        bail!(
            "{} contains the mount point {}; own other paths in it separately",
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
    fn paths_close_to_the_root_are_refused() {
        for path in ["/", "/srv", "relative/path", "/srv/../etc"] {
            assert!(check_owned(Path::new(path), &[]).is_err(), "{path}");
        }
    }

    #[test]
    fn a_link_is_removed_without_its_target() {
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

        // A parent of the owned path that was replaced by a link.
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
