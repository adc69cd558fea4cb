//! Writes `manifest.json`: size and CRC-32C of every file of a run directory. It is the last file
//! written.
//!
//! It does not contain journals: they are still growing or wait for `finish`.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use crate::At;
use crate::FORMAT_VERSION;
use crate::Result;
use crate::files;

/// The file's name in the run directory.
const NAME: &str = "manifest.json";

#[derive(Serialize)]
struct Manifest {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

#[derive(Serialize)]
struct Entry {
    bytes: u64,
    crc32c: String,
}

/// Writes the manifest of a run directory's current regular files.
///
/// # Errors
/// When a file cannot be read or the manifest cannot be written.
pub fn write(run: &Path) -> Result<()> {
    let mut files = BTreeMap::new();
    walk(run, "", &mut files)?;
    let manifest = Manifest {
        format_version: FORMAT_VERSION,
        files,
    };
    files::write_json(&run.join(NAME), &manifest)
}

fn walk(dir: &Path, prefix: &str, files: &mut BTreeMap<String, Entry>) -> Result<()> {
    for entry in fs::read_dir(dir).at(dir)? {
        let entry = entry.at(dir)?;
        let (path, kind) = (entry.path(), entry.file_type().at(dir)?);
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = format!("{prefix}{name}");
        if kind.is_dir() {
            walk(&path, &format!("{relative}/"), files)?;
        } else if kind.is_file() && relative != NAME && name != "journal" && !files::is_temporary(&name) {
            files.insert(relative, summarize(&path)?);
        }
    }
    Ok(())
}

fn summarize(path: &Path) -> Result<Entry> {
    let mut file = File::open(path).at(path)?;
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
    use super::*;

    #[test]
    fn the_manifest_has_all_files_except_itself_and_journals() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        fs::create_dir(run.join("load")).unwrap();
        fs::write(run.join("load/result.json"), "123456789").unwrap();
        fs::write(run.join("load/journal"), "growing").unwrap();
        fs::write(run.join(".run.json.tmp"), "partial").unwrap();
        write(run).unwrap();
        write(run).unwrap();
        let text = fs::read_to_string(run.join(NAME)).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        // The check value of CRC-32C is that of "123456789".
        let expected = serde_json::json!({"load/result.json": {"bytes": 9, "crc32c": "e3069283"}});
        assert_eq!(manifest["files"], expected);
    }
}
