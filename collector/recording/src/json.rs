//! JSON files that a reader never sees half of: written under another name, synced, renamed.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::to_string_pretty;

use crate::At;
use crate::Error;
use crate::Result;

/// Writes `value` as indented JSON with a final newline, replacing `path` in one step.
///
/// # Errors
/// When the value has no JSON form, or the directory does not take the file; `path` is then as it was.
pub fn write_atomic(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = to_string_pretty(value).map_err(|error| Error::format(path, error))?;
    text.push('\n');
    replace(path, |file| file.write_all(text.as_bytes()).at(path))
}

/// Lets `fill` write a file beside `path`, then syncs it and renames it to `path`.
pub(crate) fn replace<T>(path: &Path, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let beside = temporary(path);
    let written = File::create(&beside).at(path).and_then(|mut file| {
        let value = fill(&mut file)?;
        file.sync_all().at(path)?;
        Ok(value)
    });
    let renamed = written.and_then(|value| fs::rename(&beside, path).at(path).map(|()| value));
    if renamed.is_err() {
        // The half-written file is of no use to anyone; that it may already be gone does not matter.
        drop(fs::remove_file(&beside));
    }
    renamed
}

/// The name a file has until it is whole: `.NAME.tmp`, which every reader ignores.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// True for names that [`write_atomic`] and the table writer use before a file is whole.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replaces_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        write_atomic(&path, &json!({"status": "running"})).unwrap();
        write_atomic(&path, &json!({"status": "complete"})).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\n  \"status\": \"complete\"\n}\n"
        );

        let failed: Result<()> = replace(&path, |_| Err(Error::format(&path, "stopped half way")));
        assert!(failed.is_err());
        assert!(fs::read_to_string(&path).unwrap().contains("complete"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = write_atomic(Path::new("/nonexistent/run.json"), &json!({})).unwrap_err();
        assert!(
            error.to_string().starts_with("/nonexistent/run.json: "),
            "{error}"
        );
    }
}
