//! Writes and verifies `manifest.json`: size and CRC-32C of every file of a run directory. It is
//! the last file written.
//!
//! It does not contain journals: they are still growing or wait for `finish`.

use std::collections::BTreeMap;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;
use serde::Deserialize;
use serde::Serialize;

use crate::At;
use crate::Error;
use crate::FORMAT_VERSION;
use crate::Result;
use crate::files::Directory;
use crate::files::RunFile;
use crate::json;

/// The file's name in the run directory.
pub const NAME: &str = "manifest.json";

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Entry {
    bytes: u64,
    crc32c: String,
}

/// Writes the manifest of a run directory's current regular files.
///
/// # Errors
/// When a file cannot be read or the manifest cannot be written.
pub fn write(run: &Directory) -> Result<()> {
    let mut files = BTreeMap::new();
    walk(run, "", &mut files)?;
    json::write_atomic(
        &run.file(NAME),
        &Manifest {
            format_version: FORMAT_VERSION,
            files,
        },
    )
}

/// Compares `run_dir` with its manifest; returns one line per file that differs or is missing.
///
/// Files that the manifest does not list are ignored.
///
/// # Errors
/// When the manifest or a file cannot be read.
pub fn verify(run_dir: &Path) -> Result<Vec<String>> {
    let run = Directory::open(run_dir)?;
    let path = run_dir.join(NAME);
    let text = io::read_to_string(run.file(NAME).open()?).at(&path)?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| Error::format(&path, error))?;
    let mut wrong = Vec::new();
    for (name, expected) in &manifest.files {
        match run.find(Path::new(name)).and_then(|file| summarize(&file)) {
            Ok(actual) if actual == *expected => {}
            Ok(actual) => wrong.push(format!(
                "{name}: {} bytes, crc32c {}; the manifest has {} bytes, crc32c {}",
                actual.bytes, actual.crc32c, expected.bytes, expected.crc32c
            )),
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                wrong.push(format!("{name}: missing"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(wrong)
}

fn walk(dir: &Directory, prefix: &str, files: &mut BTreeMap<String, Entry>) -> Result<()> {
    for (entry, kind) in dir.entries()? {
        let name = entry.to_string_lossy();
        let relative = format!("{prefix}{name}");
        if kind == FileType::Directory {
            walk(&dir.sub(&entry)?, &format!("{relative}/"), files)?;
        } else if kind == FileType::RegularFile
            && relative != NAME
            && name != "journal"
            && !json::is_temporary(&name)
        {
            files.insert(relative, summarize(&dir.file(&entry))?);
        }
    }
    Ok(())
}

fn summarize(file: &RunFile) -> Result<Entry> {
    let (path, mut file) = (&*file.path(), file.open()?);
    let mut buffer = vec![0; 64 * 1024];
    let (mut bytes, mut crc) = (0, 0);
    loop {
        let read = file.read(&mut buffer).at(path)?;
        if read == 0 {
            return Ok(Entry {
                bytes,
                crc32c: format!("{crc:08x}"),
            });
        }
        bytes += read as u64;
        crc = crc32c::crc32c_append(crc, &buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn verify_names_changed_and_missing_files() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        fs::create_dir(run.join("load")).unwrap();
        fs::write(run.join("load/result.json"), "123456789").unwrap();
        fs::write(run.join("run.json"), "{}").unwrap();
        fs::write(run.join("load/journal"), "growing").unwrap();
        write(&Directory::open(run).unwrap()).unwrap();
        assert_eq!(verify(run).unwrap(), Vec::<String>::new());
        // The check value of CRC-32C is that of "123456789".
        assert!(fs::read_to_string(run.join(NAME)).unwrap().contains("e3069283"));

        fs::write(run.join("load/journal"), "grown").unwrap();
        assert_eq!(verify(run).unwrap(), Vec::<String>::new());
        fs::write(run.join("load/result.json"), "12345678").unwrap();
        fs::remove_file(run.join("run.json")).unwrap();
        let wrong = verify(run).unwrap();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("load/result.json: 8 bytes"), "{wrong:?}");
        assert_eq!(wrong[1], "run.json: missing");
    }

    #[test]
    fn the_error_names_a_missing_manifest() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            verify(dir.path())
                .unwrap_err()
                .to_string()
                .contains("manifest.json")
        );
    }
}
