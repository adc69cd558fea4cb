//! What can be read: one file per source, each a table of columns and a pure parser.
//!
//! Probes know no run directory and no clock. Every root is a parameter ([`Host`]), so that everything runs unprivileged on
//! a fake host. A value that the source did not print is null; a source that cannot be read is an error or [`NotRunning`].

pub mod host;
pub mod options;
pub mod procfs;
pub mod registry;

use std::fmt::Debug;
use std::io;

pub use host::Host;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;
pub use options::Options;
pub use registry::PROBES;

/// A source that is being read. Dropping it detaches.
pub trait Probe: Debug {
    /// Appends the source's rows as they are now.
    ///
    /// # Errors
    /// When the source cannot be read or is not what its format says; the rows are then not to be used.
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError>;
}

/// Opens a probe: running, off, or unavailable.
pub type Open = fn(&Host, &Options) -> Result<Box<dyn Probe>, NotRunning>;

/// One line of the list of probes.
#[derive(Debug)]
pub struct ProbeEntry {
    /// The name on the command line and of the table.
    pub name: &'static str,
    /// One line for a person.
    pub help: &'static str,
    /// What its rows mean.
    pub schema: &'static Schema,
    /// True if the probe is too dear for every tick and follows [`Options::threads_every`].
    pub every_nth: bool,
    /// Opens it.
    pub open: Open,
}

/// Why a probe is not running.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRunning {
    /// Nobody asked for it.
    #[error("{0}")]
    Off(String),
    /// It cannot be read here; the text says why and what would make it work.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a sample failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The refusal.
        source: io::Error,
    },
    /// The content is not what the format says.
    #[error("{path}:{line}: {item}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// Line from 1.
        line: u32,
        /// The field.
        item: &'static str,
        /// What is wrong with it.
        message: String,
    },
}
