//! Writes JSON files atomically: under a temporary name, synced, then renamed.

use serde::Serialize;
use serde_json::to_string_pretty;

use crate::Error;
use crate::Result;
use crate::files::RunFile;

/// Replaces `file` by `value` as indented JSON with a final newline.
///
/// # Errors
/// When the value cannot be converted to JSON, or the file cannot be written; `file` then stays
/// unchanged.
pub fn write_atomic(file: &RunFile, value: &impl Serialize) -> Result<()> {
    let mut text = to_string_pretty(value).map_err(|error| Error::format(&file.path(), error))?;
    text.push('\n');
    file.write(text.as_bytes())
}

/// True for the temporary names of [`RunFile::replace`].
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_write_keeps_the_previous_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        let file = RunFile::at(&path).unwrap();
        write_atomic(&file, &json!({"status": "running"})).unwrap();
        write_atomic(&file, &json!({"status": "complete"})).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\n  \"status\": \"complete\"\n}\n"
        );

        let failed: Result<()> = file.replace(|_| Err(Error::format(&path, "interrupted")));
        assert!(failed.is_err());
        assert!(fs::read_to_string(&path).unwrap().contains("complete"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_error_names_a_missing_directory() {
        let error = RunFile::at(Path::new("/nonexistent/run.json")).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent: "), "{error}");
    }
}
