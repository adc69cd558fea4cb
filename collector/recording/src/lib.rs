//! Writes and reads the recording format: journal, Parquet tables, phases and manifest of a run
//! directory.
//!
//! `docs/recording-format.md` specifies the format; this crate is its only writer. It does not read
//! `/proc` or MySQL.

mod body;
pub mod clock;
pub mod files;
pub mod finish;
pub mod histogram;
pub mod journal;
pub mod manifest;
pub mod phases;
pub mod rows;
pub mod schema;
pub mod staging;
pub mod table;
mod varint;

use std::path::Path;
use std::path::PathBuf;

/// The version of the format, stored in every file that has a place for it.
pub const FORMAT_VERSION: u32 = 1;

/// An error with the path of its file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct Error {
    path: PathBuf,
    /// The failure and, if there is one, the fix.
    message: String,
}

/// The result of operations on a run directory.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn format(path: &Path, message: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }
}

/// Attaches the path to an error.
trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: ToString> At<T> for std::result::Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::format(path, error))
    }
}
