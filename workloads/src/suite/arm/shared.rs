//! What the writers of a run share.

use std::sync::Arc;

use super::mix::Mix;
use super::queue::Queue;
use super::tally::Tally;

/// How a buffer becomes statements.
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

/// What all writers use.
pub struct Shared {
    /// Between producer and writers.
    pub queue: Arc<Queue>,
    /// What the records carry.
    pub mix: Mix,
    /// How a buffer becomes statements.
    pub mode: Mode,
    /// Ids by AUTO_INCREMENT.
    pub server_ids: bool,
    /// What was committed.
    pub tally: Tally,
}
