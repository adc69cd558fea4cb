//! Mounts file systems in the supervisor's private mount namespace: they are invisible outside of
//! it and end with it.

use std::fs;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_cpulist::mountinfo;
use rustix::mount::MountFlags;
use rustix::mount::MountPropagationFlags;
use rustix::mount::UnmountFlags;
use rustix::mount::mount;
use rustix::mount::mount_bind;
use rustix::mount::mount_change;
use rustix::mount::unmount;
use rustix::thread::UnshareFlags;
use rustix::thread::unshare_unsafe;

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Moves the calling process, which has one thread, into a private mount namespace.
pub fn enter_private_namespace() -> Result<()> {
    // SAFETY: a mount namespace leaves the descriptor table alone, which is what makes unshare
    // unsafe.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .context("cannot make a mount namespace (needs root with CAP_SYS_ADMIN)")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("cannot make the mounts private")
}

/// Bind-mounts `source` at `destination`.
pub fn bind(source: &Path, destination: &Path) -> Result<()> {
    let source_meta = fs::metadata(source).with_context(|| format!("{}", source.display()))?;
    let destination_meta = existing(destination)?;
    if source_meta.is_dir() != destination_meta.is_dir() {
        bail!(
            "{} and {} must be both directories or both files",
            source.display(),
            destination.display()
        );
    }
    mount_bind(source, destination)
        .with_context(|| format!("cannot bind {} at {}", source.display(), destination.display()))
}

/// Mounts proc.
pub fn proc(destination: &Path) -> Result<()> {
    directory(destination)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", destination, "proc", flags, None)
        .with_context(|| format!("cannot mount proc at {}", destination.display()))
}

/// Mounts a tmpfs with the devices that a server needs and no others.
pub fn dev(destination: &Path) -> Result<()> {
    directory(destination)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", destination, "tmpfs", flags, Some(c"mode=755"))
        .with_context(|| format!("cannot mount a tmpfs at {}", destination.display()))?;
    fill_dev(destination).inspect_err(|_| unmount(destination, UnmountFlags::DETACH).unwrap_or(()))
}

fn fill_dev(destination: &Path) -> Result<()> {
    for name in DEVICES {
        let node = destination.join(name);
        File::create(&node).with_context(|| format!("{}", node.display()))?;
        mount_bind(Path::new("/dev").join(name), &node)
            .with_context(|| format!("cannot bind /dev/{name} at {}", node.display()))?;
    }
    for (name, target) in LINKS {
        symlink(target, destination.join(name)).with_context(|| format!("/dev/{name}"))?;
    }
    let shm = destination.join("shm");
    fs::create_dir(&shm).and_then(|()| fs::set_permissions(&shm, PermissionsExt::from_mode(0o1777)))?;
    // The daemon's umask is 077, but other users must be able to open the directory.
    fs::set_permissions(destination, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Unmounts a path with all mounts below it; the kernel completes this when the last open file is
/// closed.
pub fn undo(destination: &Path) -> Result<()> {
    unmount(destination, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
        .with_context(|| format!("cannot unmount {}", destination.display()))
}

/// Mount points at or below a path, in the caller's mount namespace.
pub fn below(path: &Path) -> Result<Vec<PathBuf>> {
    let text = fs::read("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let points = mountinfo::parse(&text).map(|mount| PathBuf::from(mount.point));
    Ok(points.filter(|point| point.starts_with(path)).collect())
}

fn existing(path: &Path) -> Result<fs::Metadata> {
    fs::metadata(path).with_context(|| format!("mount point {} must exist, create it first", path.display()))
}

fn directory(path: &Path) -> Result<()> {
    if existing(path)?.is_dir() {
        Ok(())
    } else {
        bail!("mount point {} is not a directory", path.display())
    }
}
