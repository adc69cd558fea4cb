//! The output files of a process: appended to, created 0600, and only their tails read back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes read from the end.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 20;

/// One output file, from where this process began to write.
#[derive(Debug)]
pub struct Output {
    file: File,
    start: u64,
    seen_length: u64,
    last_line: String,
}

impl Output {
    /// Opens the file, creating it if needed; also gives the descriptor for the process. Its directory may be the process's own,
    /// which runs under another account: a link there, or a file with a second name, is not one to write to.
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
                "not a regular file of one name; remove it or name another",
            ));
        }
        Self::new(file)
    }

    /// Takes a file that is open for reading and appending.
    pub fn new(file: File) -> io::Result<(Self, File)> {
        let for_process = file.try_clone()?;
        let start = file.metadata()?.len();
        Ok((
            Self {
                file,
                start,
                seen_length: start,
                last_line: String::new(),
            },
            for_process,
        ))
    }

    /// The last whole or partial line that is not blank; reads only when the file has grown.
    pub fn last_line(&mut self) -> &str {
        let length = self.file.metadata().map_or(self.seen_length, |meta| meta.len());
        if length != self.seen_length {
            self.seen_length = length;
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

    /// The last lines, at most twenty and 4 KiB.
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
        // A file that somebody truncated has no "before" any more.
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
    fn the_last_line_is_this_process_s_own() {
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
    fn the_tail_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (output, mut file) = Output::open(&dir.path().join("out")).unwrap();
        for line in 0..1000 {
            writeln!(file, "line {line}").unwrap();
        }
        assert_eq!(output.tail().lines().count(), TAIL_LINES);
        assert!(output.tail().ends_with("line 999"));
    }
}
