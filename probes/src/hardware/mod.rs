//! Reads hardware and hypervisor metrics: energy, clock frequency, temperature, counters of network
//! and storage devices.
//!
//! A read can take milliseconds or hang in firmware, so all of these probes read on a separate
//! thread.

pub mod energy;
pub mod ethtool;
pub mod frequency;
pub mod nvme;

use std::path::Path;
use std::path::PathBuf;

use loadprint_cpulist::small_files::names;
use loadprint_recording::rows::Odd;

use crate::prelude::*;

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
    /// When the file does not exist or cannot be read.
    pub fn read(&mut self, odd: &mut Odd) -> Result<Option<i64>, ProbeError> {
        let mut source = match self.source.take() {
            Some(source) => source,
            None => Source::sized(self.path.clone(), Self::BUFFER)?.in_one_read(),
        };
        let value = parse_number(source.read()?, odd);
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
#[must_use]
pub fn parse_number(file: &[u8], odd: &mut Odd) -> Option<i64> {
    if file.trim_ascii() == b"<unknown>" {
        return None;
    }
    let mut cursor = Cursor::new(file);
    let value = cursor.int("value");
    odd.add(&cursor.into_odd());
    value
}

/// An attribute that has a row at each tick.
#[derive(Debug)]
struct Sensor<const ENTITY: usize> {
    entity: [String; ENTITY],
    attribute: Attribute,
    /// The constant cell after the value, in a table with one.
    constant: Option<Option<i64>>,
}

/// Appends the value of each attribute that exists. A read that fails loses
/// only its own value.
///
/// # Errors
/// When none can be read.
fn sample<const ENTITY: usize>(sensors: &mut [Sensor<ENTITY>], rows: &mut Rows) -> Result<(), ProbeError> {
    let before = rows.len();
    let mut first_error = None;
    for sensor in sensors {
        let value = match sensor.attribute.read(rows.odd_mut()) {
            Ok(value) => value,
            Err(error) => {
                let gone = is_gone(&error);
                if !gone {
                    rows.odd_mut().cell(|| error.to_string());
                }
                first_error.get_or_insert(error);
                if gone {
                    continue;
                }
                None
            }
        };
        rows.row(&sensor.entity.each_ref().map(String::as_bytes));
        for cell in [Some(value), sensor.constant].into_iter().flatten() {
            rows.int_or_null(cell);
        }
    }
    match first_error {
        Some(error) if rows.len() == before => Err(error),
        _ => Ok(()),
    }
}

/// Whether the device was removed: its file does not exist, or reading it fails.
fn is_gone(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Read { source, .. }
        if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)))
}

/// The names in a directory that start with `prefix` and a digit, in numeric order; none if the
/// directory does not exist.
fn numbered(dir: &Path, prefix: &str) -> Vec<String> {
    let is_numbered = |name: &String| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut names: Vec<_> = names(dir).into_iter().filter(is_numbered).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn attribute_is_read_again_after_its_device_returns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("temp1_input");
        let mut attribute = Attribute::new(path.clone());
        let mut odd = Odd::default();
        assert!(is_gone(&attribute.read(&mut odd).unwrap_err()));
        fs::write(&path, "-5000\n").unwrap();
        assert_eq!(attribute.read(&mut odd).unwrap(), Some(-5000));
        fs::write(&path, "<unknown>\n").unwrap();
        assert_eq!(attribute.read(&mut odd).unwrap(), None);
        assert!(odd.is_empty());
        fs::write(&path, "hot\n").unwrap();
        assert_eq!(attribute.read(&mut odd).unwrap(), None);
        assert_eq!(odd.to_string(), "1 cell (line 1: value: `hot` is not its value)");
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
