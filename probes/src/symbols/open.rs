//! Opens the files of watched processes, with the recorder's privileges and without reading them.
//!
//! An open can block for good, in a file system of the process (fuse(4)): call these functions in a
//! child with a deadline.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs;

use super::Mapping;

/// The largest file that is read: the debug file of a browser has 3 GB.
const MAX_FILE: u64 = 8 << 30;
/// Where packages install debug files.
const DEBUG_DIRECTORY: &str = "usr/lib/debug";
const PATH: fs::OFlags = fs::OFlags::PATH.union(fs::OFlags::CLOEXEC);

/// Opens `/proc/PID/NAME`, such as `maps` or `exe`.
pub fn of_process(proc: &Path, pid: u32, name: &str) -> io::Result<File> {
    let handle = fs::open(proc.join(pid.to_string()).join(name), PATH, fs::Mode::empty())?;
    for_reading(proc, &handle, |_| true)
}

/// Opens the file of a mapping.
///
/// `map_files` leads to the file itself, also if its path leads to another one now (proc_pid_map_files(5)).
/// Without CAP_CHECKPOINT_RESTORE, paths are tried: the program's, and the mapping's below the root of
/// the process and here; their file must have the device and inode number of the mapping.
pub fn of_mapping(proc: &Path, pid: u32, mapping: &Mapping) -> io::Result<File> {
    let of_process = proc.join(pid.to_string());
    let range = format!("map_files/{:x}-{:x}", mapping.start, mapping.end);
    let exact = fs::open(of_process.join(range), PATH, fs::Mode::empty());
    match exact {
        Ok(handle) => return for_reading(proc, &handle, |_| true),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error.into()),
        Err(_) => {}
    }
    let paths = [
        of_process.join("exe"),
        of_process.join(format!("root{}", mapping.name)),
        mapping.name.clone().into(),
    ];
    let is_mapped = |stat: &fs::Statx| {
        let device = fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        stat.stx_ino == mapping.inode && Some(device) == device_of(&mapping.device)
    };
    let found = paths.into_iter().find_map(|path| {
        let handle = fs::open(path, PATH, fs::Mode::empty()).ok()?;
        for_reading(proc, &handle, is_mapped).ok()
    });
    found.ok_or_else(|| exact.err().map_or(ErrorKind::NotFound.into(), io::Error::from))
}

/// Opens all files that can be the debug file of a program or library with this path, as GDB finds
/// them: by the build ID, where packages of debug symbols install it, else by the name in section
/// `.gnu_debuglink`; below the root of the process, then below this one.
pub fn debug_files(proc: &Path, pid: u32, path: &str, build_id: &str, link: Option<&str>) -> Vec<File> {
    let paths = debug_paths(path, build_id, link);
    let roots = [proc.join(format!("{pid}/root")), proc.join("self/root")];
    let roots = roots
        .into_iter()
        .filter_map(|root| fs::open(root, PATH, fs::Mode::empty()).ok());
    let open_below = |root: &OwnedFd, path: &Path| {
        // The links of the root do not leave it.
        let handle = fs::openat2(root, path, PATH, fs::Mode::empty(), fs::ResolveFlags::IN_ROOT)?;
        for_reading(proc, &handle, |_| true)
    };
    let mut files = vec![];
    for root in roots {
        files.extend(paths.iter().filter_map(|path| open_below(&root, path).ok()));
    }
    files
}

fn debug_paths(path: &str, build_id: &str, link: Option<&str>) -> Vec<PathBuf> {
    let mut paths = vec![];
    if let Some((first, rest)) = build_id.split_at_checked(2)
        && build_id.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        paths.push(format!("{DEBUG_DIRECTORY}/.build-id/{first}/{rest}.debug").into());
    }
    let path = path.trim_start_matches('/');
    let directory = Path::new(path).parent().unwrap_or(Path::new(""));
    // A name, not a path.
    let is_name = |name: &&str| Path::new(name).file_name() == Some(name.as_ref()) && !name.contains('\0');
    if let Some(name) = link.filter(is_name) {
        paths.push(directory.join(name));
        paths.push(directory.join(".debug").join(name));
        paths.push(Path::new(DEBUG_DIRECTORY).join(directory).join(name));
    }
    paths
}

/// Opens a regular file of a usual size. Another file, such as a device, can have effects when it is
/// opened; a lease of another process (fcntl(2)) would block it.
fn for_reading(
    proc: &Path,
    handle: impl AsFd,
    is_wanted: impl FnOnce(&fs::Statx) -> bool,
) -> io::Result<File> {
    let handle = handle.as_fd();
    let flags = fs::AtFlags::EMPTY_PATH | fs::AtFlags::STATX_DONT_SYNC;
    let stat = fs::statx(handle, "", flags, fs::StatxFlags::BASIC_STATS)?;
    let is_regular = fs::FileType::from_raw_mode(stat.stx_mode.into()) == fs::FileType::RegularFile;
    if !is_regular || stat.stx_size > MAX_FILE || !is_wanted(&stat) {
        return Err(io::Error::other("not a regular file of a usual size"));
    }
    let path = proc.join(format!("self/fd/{}", handle.as_raw_fd()));
    let flags = fs::OFlags::RDONLY | fs::OFlags::NONBLOCK | fs::OFlags::CLOEXEC | fs::OFlags::NOCTTY;
    Ok(fs::open(path, flags, fs::Mode::empty())?.into())
}

/// Parses the device of a mapping, `08:01`.
fn device_of(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    Some(fs::makedev(number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_paths_are_those_of_gdb() {
        let of = |link: &str| {
            let found = debug_paths("/usr/sbin/mysqld", "abcd01", Some(link));
            let texts = found.iter().map(|path| path.display().to_string());
            texts.collect::<Vec<_>>()
        };
        let by_id = "usr/lib/debug/.build-id/ab/cd01.debug";
        assert_eq!(
            of("mysqld.debug"),
            [
                by_id,
                "usr/sbin/mysqld.debug",
                "usr/sbin/.debug/mysqld.debug",
                "usr/lib/debug/usr/sbin/mysqld.debug"
            ]
        );
        for link in ["", ".", "..", "../mysqld", "/etc/passwd"] {
            assert_eq!(of(link), [by_id], "{link}");
        }
        for build_id in ["", "ab/../../../etc/shadow"] {
            assert_eq!(debug_paths("[vdso]", build_id, None), Vec::<PathBuf>::new());
        }
    }

    #[test]
    fn device_has_a_major_and_a_minor_number() {
        assert_eq!(device_of("fe:10"), Some(fs::makedev(254, 16)));
        assert_eq!(device_of("fe"), None);
    }
}
