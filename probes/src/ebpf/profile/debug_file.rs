//! Finds the separate file with the symbols of a stripped program or library, as GDB does: by the
//! build ID, where packages of debug symbols install it, else by the name in section
//! `.gnu_debuglink`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use object::Object;
use object::ReadCache;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::ResolveFlags;
use rustix::fs::open;
use rustix::fs::openat2;

use super::modules::hexadecimal;
use super::modules::open_regular;
use crate::Host;

/// Where packages install the files.
const DIRECTORY: &str = "usr/lib/debug";

/// The debug file of the program or library `elf` with this path, which process `pid` executes: below
/// the root of the process, else below that of the recorder. It has the same build ID.
pub fn find<'data>(host: &Host, pid: u32, path: &str, elf: &impl Object<'data>) -> Option<File> {
    let build_id = elf.build_id().ok()??;
    let link = elf.gnu_debuglink().ok().flatten();
    let paths = candidates(path, build_id, link.map(|(name, _)| OsStr::from_bytes(name)));
    let roots = [host.proc(&format!("{pid}/root")), host.proc("self/root")];
    roots.iter().find_map(|root| {
        let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        paths.iter().find_map(|path| {
            let file = open_below(host, &root, path).ok().flatten()?;
            is_debug_file(&file, build_id).then_some(file)
        })
    })
}

/// Where the file can be, relative to a root.
fn candidates(path: &str, build_id: &[u8], link: Option<&OsStr>) -> Vec<PathBuf> {
    let mut candidates = vec![];
    if let Some((first, rest)) = hexadecimal(build_id).split_at_checked(2) {
        candidates.push(format!("{DIRECTORY}/.build-id/{first}/{rest}.debug").into());
    }
    let path = path.trim_start_matches('/');
    let directory = Path::new(path).parent().unwrap_or(Path::new(""));
    // A name, not a path.
    if let Some(name) = link.filter(|name| Path::new(name).file_name() == Some(name)) {
        candidates.push(directory.join(name));
        candidates.push(directory.join(".debug").join(name));
        candidates.push(Path::new(DIRECTORY).join(directory).join(name));
    }
    candidates
}

/// Opens a file below a root, which the root's links do not leave.
fn open_below(host: &Host, root: impl AsFd, path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let handle = openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    open_regular(host, &handle, |_| true)
}

fn is_debug_file(file: &File, build_id: &[u8]) -> bool {
    let cache = ReadCache::new(file);
    object::File::parse(&cache)
        .is_ok_and(|elf| elf.build_id() == Ok(Some(build_id)) && elf.symbols().next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_gdb() {
        let of = |link: &str| {
            let found = candidates("/usr/sbin/mysqld", &[0xab, 0xcd, 0x01], Some(OsStr::new(link)));
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
        assert_eq!(candidates("[vdso]", &[], None), Vec::<PathBuf>::new());
    }
}
