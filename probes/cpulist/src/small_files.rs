//! Reads the small files and the directories of procfs and sysfs.

use std::fs;
use std::path::Path;

/// The text of a file, trimmed; `None` if it cannot be read or is empty.
#[must_use]
pub fn line(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    (!text.is_empty()).then_some(text)
}

/// The names in a directory, sorted; none if it cannot be read.
#[must_use]
pub fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The names in a directory that are numbers.
#[must_use]
pub fn numbers(path: &Path) -> Vec<u32> {
    let names = names(path).into_iter();
    names.filter_map(|name| name.parse().ok()).collect()
}
