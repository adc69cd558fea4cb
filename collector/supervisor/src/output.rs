//! Output files of a process: opened for appending with mode 0600; only their ends are read back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes that are read from the end.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 20;

/// An output file, from the offset at which this process began to write.
#[derive(Debug)]
pub struct Output {
    file: File,
    start: u64,
    last_length: u64,
    last_line: String,
}

impl Output {
    /// Opens the file, or creates it; also returns the descriptor for the process. Another user may
    /// own the directory, so links and files with hard links are refused.
    pub fn open(path: &Path) -> io::Result<(Self, File)> {
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.nlink() != 1 {
            return Err(io::Error::other(
                "not a regular file without hard links; remove it or choose another",
            ));
        }
        Self::new(file)
    }

    /// Uses a file that is open for reading and appending.
    pub fn new(file: File) -> io::Result<(Self, File)> {
        let for_process = file.try_clone()?;
        let start = file.metadata()?.len();
        Ok((
            Self {
                file,
                start,
                last_length: start,
                last_line: String::new(),
            },
            for_process,
        ))
    }

    /// The last line, complete or not, that is not blank; reads only if the file's size has
    /// changed.
    pub fn last_line(&mut self) -> &str {
        let length = self.file.metadata().map_or(self.last_length, |meta| meta.len());
        if length != self.last_length {
            self.last_length = length;
            let tail = self.read_tail(length);
            self.last_line = tail
                .lines()
                .rev()
                .map(str::trim_end)
                .find(|line| !line.is_empty())
                .unwrap_or("")
                .to_owned();
        }
        &self.last_line
    }

    /// The last lines, at most 20 lines and 4 KiB.
    pub fn tail(&self) -> String {
        let text = self.read_tail(self.file.metadata().map_or(self.start, |meta| meta.len()));
        let text = text.trim_end();
        let lines: Vec<&str> = text.lines().collect();
        lines
            .get(lines.len().saturating_sub(TAIL_LINES)..)
            .unwrap_or_default()
            .join("\n")
    }

    fn read_tail(&self, length: u64) -> String {
        // After a truncation the start offset is meaningless.
        let start = if length < self.start { 0 } else { self.start };
        let from = start.max(length.saturating_sub(TAIL_BYTES));
        let mut bytes = vec![0; usize::try_from(length.saturating_sub(from)).unwrap_or(0)];
        match self.file.read_at(&mut bytes, from) {
            Ok(read) => String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned(),
            Err(error) => format!("(cannot be read: {error})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_line_is_that_of_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "before\n").unwrap();
        let (mut output, mut file) = Output::open(&path).unwrap();
        assert_eq!(output.last_line(), "");
        write!(file, "one\ntwo\n\n").unwrap();
        assert_eq!(output.last_line(), "two");
        write!(file, "thr").unwrap();
        assert_eq!(output.last_line(), "thr");
        assert_eq!(output.tail(), "one\ntwo\n\nthr");
    }

    #[test]
    fn the_tail_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let (output, mut file) = Output::open(&dir.path().join("out")).unwrap();
        for line in 0..1000 {
            writeln!(file, "line {line}").unwrap();
        }
        assert_eq!(output.tail().lines().count(), TAIL_LINES);
        assert!(output.tail().ends_with("line 999"));
    }
}
