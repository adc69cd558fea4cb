//! What the hardware and the hypervisor tell: energy, clock frequency, temperature, counters of network and storage devices.
//!
//! Reads may take milliseconds or hang in firmware, so all of them go on beside the ticks.

pub mod energy;
pub mod ethtool;
pub mod frequency;
pub mod ioctl;
pub mod log_page;
pub mod nvme;
pub mod thermal;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::rows::Rows;

use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;
use crate::procfs::fields::Cursor;

/// A sysfs attribute that holds one number. It is opened again when its device went and came back.
#[derive(Debug)]
pub struct Attribute {
    path: PathBuf,
    source: Option<Source>,
}

impl Attribute {
    /// sysfs prints a number in far less.
    const BUFFER: usize = 64;

    /// The attribute at `path`, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, source: None }
    }

    /// Its number now; `None` if the driver says that it does not know.
    ///
    /// # Errors
    /// When it is not there, cannot be read or is not a number.
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

/// Parses an attribute of one number; `<unknown>` is what cpufreq prints for want of one.
///
/// ```text
/// 2400000
/// ```
///
/// # Errors
/// When it is anything else.
pub fn parse_number(file: &[u8]) -> Result<Option<i64>, ParseError> {
    if file.trim_ascii() == b"<unknown>" {
        return Ok(None);
    }
    Cursor::new(file).need_int("value").map(Some)
}

/// One sample over many attributes: each read is timed, and one that fails costs its own value only.
#[derive(Debug, Default)]
struct Watch {
    first_error: Option<ProbeError>,
}

impl Watch {
    /// The number, and how long the read took (us); nothing if the attribute is not there.
    fn read(&mut self, attribute: &mut Attribute) -> Option<(Option<i64>, u64)> {
        let begun = monotonic_ns();
        let value = attribute.read();
        let took_us = u64::try_from((monotonic_ns() - begun) / 1000).unwrap_or(0);
        match value {
            Ok(value) => Some((value, took_us)),
            Err(error) => {
                let gone = is_gone(&error);
                self.first_error.get_or_insert(error);
                (!gone).then_some((None, took_us))
            }
        }
    }

    /// Rows of which some were read are good; where none was, the first reason is told.
    fn end(self, rows: &Rows, before: usize) -> Result<(), ProbeError> {
        match self.first_error {
            // What a driver prints wrongly is told at once: it is our misreading or its bug.
            Some(error @ ProbeError::Parse { .. }) => Err(error),
            Some(error) if rows.len() == before => Err(error),
            _ => Ok(()),
        }
    }
}

/// A device that went leaves no file, or a descriptor that says so.
fn is_gone(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Read { source, .. }
        if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)))
}

/// A cell of a number that may be missing.
fn int_or_null(value: Option<i64>, rows: &mut Rows) {
    match value {
        Some(value) => rows.int(value),
        None => rows.null(),
    }
}

/// The names in a directory that begin with `prefix` and a digit, in the order of their numbers; none if there is no such directory.
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

/// The text of a small file without blanks at its ends, if it can be read and says anything.
fn word(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_follows_its_device() {
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
    fn numbers_are_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq", "cpuidle"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        assert_eq!(numbered(dir.path(), "cpu"), ["cpu0", "cpu2", "cpu10"]);
    }
}
