//! The only door to the outside: the roots of `/proc` and `/sys`, and files under them that stay open.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;

use crate::NotRunning;
use crate::ProbeError;

/// Where `/proc` and `/sys` are.
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

    /// The same for a file that is read with [`Source::pieces`].
    ///
    /// # Errors
    /// As [`Host::source`].
    pub fn long_source(&self, name: &str, mend: &str) -> Result<Source, NotRunning> {
        let opened = Source::sized(self.proc(name), Source::PIECE)
            .and_then(|mut source| source.pieces(|_| Ok(())).map(|()| source));
        opened.map_err(|error| NotRunning::Unavailable(format!("{error}; {mend}")))
    }

    /// Opens a file under `/proc` to be read at every tick, and reads it once.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] with the reason and `mend`: what would make it work.
    pub fn source(&self, name: &str, mend: &str) -> Result<Source, NotRunning> {
        let opened =
            Source::open(self.proc(name)).and_then(|mut source| source.read().map(drop).map(|()| source));
        opened.map_err(|error| NotRunning::Unavailable(format!("{error}; {mend}")))
    }
}

/// A file that is read whole, again and again, through one descriptor and into one buffer.
#[derive(Debug)]
pub struct Source {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    ends: Ends,
}

/// How the end of a file is known.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// By a read that gives nothing.
    Empty,
    /// By one that does not fill the buffer.
    Short,
    /// By one that leaves room for a record of so many bytes in the kernel's page.
    Below(usize),
}

impl Source {
    const FIRST_BUFFER: usize = 4096;
    /// Long files are taken a piece at a time, which stays in the caches and needs no more memory than that.
    const PIECE: usize = 1 << 16;
    /// The smallest page that Linux has.
    const SEQ_PAGE: usize = 4096;

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
        match File::open(&path) {
            Ok(file) => Ok(Self {
                file,
                path,
                buffer: vec![0; size],
                ends: Ends::Empty,
            }),
            Err(source) => Err(ProbeError::Read {
                path: path.display().to_string(),
                source,
            }),
        }
    }

    /// Takes a short read as the end of the file, which saves a system call.
    ///
    /// Right for files that the kernel makes with `single_open` (`fs/seq_file.c`), and for those only: iterated ones give
    /// about a page at a time.
    #[must_use]
    pub fn in_one_read(mut self) -> Self {
        self.ends = Ends::Short;
        self
    }

    /// Takes a read that leaves room for another record as the end of the file, which saves a system call.
    ///
    /// Right for iterated files whose records, what one call of `show` prints, are all shorter than `bytes`: `seq_read_iter`
    /// (`fs/seq_file.c`, and `seq_read` before Linux 5.10) collects records in a buffer of at least a page, and stops short of
    /// the reader's own buffer only at the end of the file or when the next record would not fit. Not right where a record
    /// may be of any length: a line of `/proc/interrupts`, or a disk with all its partitions in `/proc/diskstats`.
    #[must_use]
    pub fn records_below(mut self, bytes: usize) -> Self {
        self.ends = Ends::Below(bytes);
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
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(&self.buffer[..length]),
                Ok(count) => {
                    length += count;
                    let at_end = match self.ends {
                        Ends::Empty => false,
                        Ends::Short => true,
                        Ends::Below(record) => count + record < Self::SEQ_PAGE,
                    };
                    if at_end && length < self.buffer.len() {
                        return Ok(&self.buffer[..length]);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ProbeError::Read {
                        path: self.path(),
                        source,
                    });
                }
            }
        }
    }

    /// Reads the file and hands its text to `parse`; a parse error gets the path.
    ///
    /// # Errors
    /// When the file cannot be read or parsed.
    pub fn parse<T>(&mut self, parse: impl FnOnce(&[u8]) -> Result<T, ParseError>) -> Result<T, ProbeError> {
        let text = self.read()?;
        parse(text).map_err(|error| error.at(&self.path))
    }

    /// Reads the file from its beginning and hands whole lines to `take`, as many as there are by then; what stands behind the
    /// last end of a line comes last. A parse error gets the path.
    ///
    /// # Errors
    /// When the file cannot be read or parsed.
    pub fn pieces(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), ParseError>,
    ) -> Result<(), ProbeError> {
        // Bytes at the beginning of the buffer that are no whole line yet, and where they are in the file.
        let (mut held, mut offset) = (0, 0u64);
        loop {
            if held == self.buffer.len() {
                self.buffer.resize(2 * held, 0);
            }
            let count = match self.file.read_at(&mut self.buffer[held..], offset + held as u64) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(ProbeError::Read {
                        path: self.path(),
                        source,
                    });
                }
            };
            let end = held + count;
            let lines = match count {
                0 => end,
                _ => memchr::memrchr(b'\n', &self.buffer[held..end]).map_or(0, |last| held + last + 1),
            };
            if lines > 0 {
                take(&self.buffer[..lines]).map_err(|error| error.at(&self.path))?;
            }
            if count == 0 {
                return Ok(());
            }
            self.buffer.copy_within(lines..end, 0);
            held = end - lines;
            offset += lines as u64;
        }
    }

    /// A parse error of this file.
    #[must_use]
    pub fn refused(&self, error: ParseError) -> ProbeError {
        error.at(&self.path)
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }
}

/// A parse error without its path, which the pure parsers do not know.
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
    /// The error with its path.
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
    fn a_source_follows_its_file_and_grows_its_buffer() {
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
    fn pieces_are_whole_lines_and_together_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("interrupts");
        let lines = |lengths: &[usize]| {
            lengths
                .iter()
                .map(|length| "x".repeat(*length))
                .collect::<Vec<_>>()
        };
        for text in [
            String::new(),
            "\n".to_owned(),
            lines(&[3, 0, 7, 15, 16, 17, 100, 1]).join("\n"),
            lines(&[40, 1, 1]).join("\n") + "\n",
        ] {
            fs::write(&path, &text).unwrap();
            for buffer in [1, 7, 16, 1000] {
                let mut source = Source::sized(path.clone(), buffer).unwrap();
                for _ in 0..2 {
                    let mut pieces: Vec<Vec<u8>> = vec![];
                    let keep = |piece: &[u8]| {
                        pieces.push(piece.to_vec());
                        Ok(())
                    };
                    source.pieces(keep).unwrap();
                    let before_last = pieces.iter().rev().skip(1);
                    assert!(before_last.into_iter().all(|piece| piece.ends_with(b"\n")));
                    assert_eq!(pieces.concat(), text.as_bytes());
                }
            }
        }
    }

    /// Files of this kernel, whose records are short: both ways must give all of it. The numbers change, the lines do only when an
    /// interface comes or goes, as it may between two of the reads.
    #[test]
    fn a_read_with_room_for_another_record_was_the_last_one() {
        let host = Host::default();
        for (name, record) in [("vmstat", 128), ("net/dev", 512)] {
            let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
            for buffer in [16, 1000, 4096, 1 << 16] {
                let mut patient = Source::sized(host.proc(name), buffer).unwrap();
                let mut quick = Source::sized(host.proc(name), buffer)
                    .unwrap()
                    .records_below(record);
                loop {
                    let before = lines(patient.read().unwrap());
                    let found = lines(quick.read().unwrap());
                    if lines(patient.read().unwrap()) == before {
                        assert_eq!(found, before, "{name} into {buffer} bytes");
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_there_names_the_path_and_the_mend() {
        let host = Host::new("/nonexistent", "/nonexistent");
        let error = host
            .source("pressure/cpu", "boot with psi=1")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/nonexistent/pressure/cpu: "), "{error}");
        assert!(error.ends_with("boot with psi=1"), "{error}");
    }
}
