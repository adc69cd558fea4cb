//! The recording format: journal, Parquet tables, phases and manifest of one run directory.
//!
//! Knows nothing of `/proc` or MySQL. `docs/recording-format.md` is the description; this crate is its only writer.

pub mod clock;
pub mod files;
pub mod finish;
pub mod histogram;
pub mod journal;
pub mod json;
pub mod manifest;
pub mod phases;
pub mod rows;
pub mod schema;
pub mod staging;
pub mod table;

use std::io;
use std::path::Path;
use std::path::PathBuf;

/// The version of the format, written into every file that can carry it.
pub const FORMAT_VERSION: u32 = 1;

/// What went wrong, with the file it went wrong in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The refusal. It is in the message, so it is not offered as `source()` a second time.
        cause: io::Error,
    },
    /// The content is not what the format says.
    #[error("{}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong and, where there is one, the mend.
        message: String,
    },
}

/// The result of everything that touches a run directory.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// True if the file system is full or a quota is used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { cause, .. }
            if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

    fn format(path: &Path, message: impl ToString) -> Self {
        Self::Format {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }
}

/// Attaches the path to an I/O error.
trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::Io {
            path: path.to_owned(),
            cause,
        })
    }
}

impl<T> At<T> for rustix::io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(io::Error::from).at(path)
    }
}
