//! The state that the writers of a run share.

use std::sync::Arc;

use super::mix::Mix;
use super::queue::Queue;
use super::tally::Tally;

/// The rows of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One row.
    Row,
    /// All detail rows of a record.
    Multi,
    /// All rows of a buffer.
    Bulk,
}

impl Mode {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Multi => "multi",
            Self::Bulk => "bulk",
        }
    }
}

/// The state.
pub struct Shared {
    /// The queue between producer and writers.
    pub queue: Arc<Queue>,
    /// The scenarios of the records.
    pub mix: Mix,
    /// The rows of one statement.
    pub mode: Mode,
    /// The server assigns ids by AUTO_INCREMENT.
    pub server_ids: bool,
    /// Counts of committed rows.
    pub tally: Tally,
}
