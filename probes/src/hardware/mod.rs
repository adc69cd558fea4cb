//! Reads hardware and hypervisor metrics: energy, clock frequency, temperature, counters of network
//! and storage devices.
//!
//! A read can take milliseconds or hang in firmware, so all of these probes read on a separate
//! thread.

pub mod energy;
pub mod ethtool;
pub mod frequency;
pub mod ioctl;
pub mod log_page;
pub mod nvme;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use loadprint_recording::clock::monotonic_ns;

use crate::prelude::*;
use crate::procfs::fields::Cursor;

/// A sysfs attribute with one number. If its device is removed and added again, the file is opened
/// again.
#[derive(Debug)]
pub struct Attribute {
    path: PathBuf,
    source: Option<Source>,
}

impl Attribute {
    /// Longer than any number in sysfs.
    const BUFFER: usize = 64;

    /// The attribute at `path`, which may not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, source: None }
    }

    /// Reads the number; `None` if the driver does not know it.
    ///
    /// # Errors
    /// When the file does not exist, cannot be read or does not contain a number.
    pub fn read(&mut self) -> Result<Option<i64>, ProbeError> {
        let mut source = match self.source.take() {
            Some(source) => source,
            None => Source::sized(self.path.clone(), Self::BUFFER)?.in_one_read(),
        };
        let value = source.parse(parse_number)?;
        self.source = Some(source);
        Ok(value)
    }
}

/// Parses an attribute with one number. cpufreq prints `<unknown>` if it has none.
///
/// ```text
/// 2400000
/// ```
///
/// # Errors
/// When it has another content.
pub fn parse_number(file: &[u8]) -> Result<Option<i64>, ParseError> {
    if file.trim_ascii() == b"<unknown>" {
        return Ok(None);
    }
    Cursor::new(file).need_int("value").map(Some)
}

/// One sample of many attributes: it times each read, and a read that fails loses only its own
/// value.
#[derive(Debug, Default)]
struct TimedReads {
    first_error: Option<ProbeError>,
}

impl TimedReads {
    /// Reads the number and measures the time of the read (us); `None` if the attribute does not
    /// exist.
    fn read(&mut self, attribute: &mut Attribute) -> Option<(Option<i64>, u64)> {
        let start = monotonic_ns();
        let value = attribute.read();
        let read_us = u64::try_from((monotonic_ns() - start) / 1000).unwrap_or(0);
        match value {
            Ok(value) => Some((value, read_us)),
            Err(error) => {
                let gone = is_gone(&error);
                self.first_error.get_or_insert(error);
                (!gone).then_some((None, read_us))
            }
        }
    }

    /// Returns the first error if no attribute was read.
    fn end(self, rows: &Rows, before: usize) -> Result<(), ProbeError> {
        match self.first_error {
            // Malformed content is always reported: it is a bug of the driver or of the parser.
            Some(error @ ProbeError::Parse { .. }) => Err(error),
            Some(error) if rows.len() == before => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether the device was removed: its file does not exist, or reading it fails.
fn is_gone(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Read { source, .. }
        if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)))
}

/// Appends a number or null.
fn int_or_null(value: Option<i64>, rows: &mut Rows) {
    match value {
        Some(value) => rows.int(value),
        None => rows.null(),
    }
}

/// The names in a directory that start with `prefix` and a digit, in numeric order; none if the
/// directory does not exist.
fn numbered(dir: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return vec![];
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let digits = |name: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut names: Vec<_> = names.filter(|name| digits(name)).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// The trimmed text of a small file, if it can be read and is not empty.
fn word(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_is_read_again_after_its_device_returns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("temp1_input");
        let mut attribute = Attribute::new(path.clone());
        assert!(is_gone(&attribute.read().unwrap_err()));
        fs::write(&path, "-5000\n").unwrap();
        assert_eq!(attribute.read().unwrap(), Some(-5000));
        fs::write(&path, "<unknown>\n").unwrap();
        assert_eq!(attribute.read().unwrap(), None);
        fs::write(&path, "hot\n").unwrap();
        let error = attribute.read().unwrap_err().to_string();
        assert!(
            error.ends_with("temp1_input:1: value: `hot` is not a number"),
            "{error}"
        );
    }

    #[test]
    fn names_are_in_numeric_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq", "cpuidle"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        assert_eq!(numbered(dir.path(), "cpu"), ["cpu0", "cpu2", "cpu10"]);
    }
}
