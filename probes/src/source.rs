//! Opens and reads files under the roots of `/proc` and `/sys`. Probes open no other files of the
//! host.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;

use loadprint_recording::rows::Rows;

use crate::NotRunning;
use crate::Probe;
use crate::ProbeError;

/// The fix for a file under `/proc` that cannot be opened.
pub(crate) const MOUNT_PROC: &str = "mount /proc, or set its path with --proc-root";

/// The advice where the recorder has no file descriptor left.
pub(crate) const RAISE_OPEN_FILES: &str = "raise the limit of open files (ulimit -n)";

/// The advice for an error: `fix`, unless no file descriptor is left.
pub(crate) fn fix_of<'fix>(error: &impl fmt::Display, fix: &'fix str) -> &'fix str {
    if error.to_string().contains("(os error 24)") {
        RAISE_OPEN_FILES
    } else {
        fix
    }
}

fn unavailable(error: &ProbeError, fix: &str) -> NotRunning {
    NotRunning::Unavailable(format!("{error}; {}", fix_of(error, fix)))
}

/// An error with the advice on permissions, if it is one of permissions.
pub(crate) fn refused(error: &ProbeError, fix: &str) -> String {
    match error {
        ProbeError::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("{error}; {fix}")
        }
        _ => error.to_string(),
    }
}

/// The roots of `/proc` and `/sys`.
#[derive(Clone, Debug)]
pub struct Host {
    proc: PathBuf,
    sys: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self::new("/proc", "/sys")
    }
}

impl Host {
    /// A host with these roots.
    pub fn new(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self {
            proc: proc.into(),
            sys: sys.into(),
        }
    }

    /// A path under `/proc`.
    #[must_use]
    pub fn proc(&self, name: &str) -> PathBuf {
        self.proc.join(name)
    }

    /// A path under `/sys`.
    #[must_use]
    pub fn sys(&self, name: &str) -> PathBuf {
        self.sys.join(name)
    }

    /// Opens a file under `/proc` and reads it once.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] with the reason and `fix`, the advice to the user.
    pub fn source(&self, name: &str, fix: &str) -> Result<Source, NotRunning> {
        let opened =
            Source::open(self.proc(name)).and_then(|mut source| source.read().map(drop).map(|()| source));
        opened.map_err(|error| unavailable(&error, fix))
    }
}

/// A file that is read completely at each tick, with one descriptor and one buffer.
#[derive(Debug)]
pub struct Source {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Whether a read that does not fill the buffer shows the end, not only one of no bytes.
    in_one_read: bool,
}

impl Source {
    const FIRST_BUFFER: usize = 4096;

    /// Opens `path`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: PathBuf) -> Result<Self, ProbeError> {
        Self::sized(path, Self::FIRST_BUFFER)
    }

    /// Opens `path` with a buffer of `size` bytes, which grows as needed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn sized(path: PathBuf, size: usize) -> Result<Self, ProbeError> {
        let file = File::open(&path).map_err(|source| unreadable(&path, source))?;
        Ok(Self {
            file,
            path,
            buffer: vec![0; size],
            in_one_read: false,
        })
    }

    /// Treats a short read as the end of the file, which saves a system call.
    ///
    /// Correct only for files that the kernel creates with `single_open` (`fs/seq_file.c`):
    /// iterated files return about a page at a time.
    #[must_use]
    pub fn in_one_read(mut self) -> Self {
        self.in_one_read = true;
        self
    }

    /// Reads the file from its beginning.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self) -> Result<&[u8], ProbeError> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            let count = self.read_from(length)?;
            length += count;
            if count == 0 || self.in_one_read && length < self.buffer.len() {
                return Ok(&self.buffer[..length]);
            }
        }
    }

    /// Reads from offset `start` of the file into the buffer from there on.
    fn read_from(&mut self, start: usize) -> Result<usize, ProbeError> {
        loop {
            match self.file.read_at(&mut self.buffer[start..], start as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|source| unreadable(&self.path, source)),
            }
        }
    }

    /// Reads the file and calls `parse` with its text; adds the path to a parse error.
    ///
    /// # Errors
    /// When the file cannot be read or parsed.
    pub fn parse<T>(&mut self, parse: impl FnOnce(&[u8]) -> Result<T, ParseError>) -> Result<T, ProbeError> {
        let text = self.read()?;
        parse(text).map_err(|error| error.at(&self.path))
    }
}

fn unreadable(path: &Path, source: io::Error) -> ProbeError {
    let path = path.display().to_string();
    ProbeError::Read { path, source }
}

type Parse = Box<dyn FnMut(&[u8], &mut Rows) -> Result<(), ParseError>>;

/// A probe that reads and parses whole files at each tick.
#[derive(Default)]
pub(crate) struct Files(Vec<(Source, Parse)>);

impl Files {
    /// The same probe, which also reads `file`.
    pub(crate) fn with(
        mut self,
        file: Source,
        parse: impl FnMut(&[u8], &mut Rows) -> Result<(), ParseError> + 'static,
    ) -> Self {
        self.0.push((file, Box::new(parse)));
        self
    }

    /// The probe of the files that could be opened; `error` is the first of the others.
    pub(crate) fn opened(self, error: Option<NotRunning>) -> Result<Box<dyn Probe>, NotRunning> {
        match error {
            Some(error) if self.0.is_empty() => Err(error),
            _ => Ok(Box::new(self)),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.iter().map(|(file, _)| file);
        formatter.debug_list().entries(files).finish()
    }
}

impl Probe for Files {
    /// A file that cannot be read costs its own rows.
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut result = Ok(());
        for (file, parse) in &mut self.0 {
            if let Err(error) = file.parse(|text| parse(text, rows)) {
                rows.odd_mut().line(|| error.to_string());
                result = Err(error);
            }
        }
        if rows.is_empty() { result } else { Ok(()) }
    }
}

/// A parse error without the path, which pure parsers do not have.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line from 1.
    pub line: u32,
    /// The field.
    pub item: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl ParseError {
    /// Adds the path.
    #[must_use]
    pub fn at(self, path: &Path) -> ProbeError {
        let path = path.display().to_string();
        ProbeError::Parse {
            path,
            line: self.line,
            item: self.item,
            message: self.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn source_reads_changed_content_and_grows_its_buffer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        fs::write(&path, "one").unwrap();
        let mut source = Source::open(path.clone()).unwrap();
        assert_eq!(source.read().unwrap(), b"one");
        fs::write(&path, vec![b'x'; 3 * Source::FIRST_BUFFER]).unwrap();
        assert_eq!(source.read().unwrap().len(), 3 * Source::FIRST_BUFFER);
        fs::write(&path, "").unwrap();
        assert_eq!(source.read().unwrap(), b"");
    }

    #[test]
    fn error_of_a_missing_file_has_path_and_fix() {
        let host = Host::new("/nonexistent", "/nonexistent");
        let error = host
            .source("pressure/cpu", "boot with psi=1")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/nonexistent/pressure/cpu: "), "{error}");
        assert!(error.ends_with("boot with psi=1"), "{error}");
    }
}
