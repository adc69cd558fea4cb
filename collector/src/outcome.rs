//! The result of the newest read of one probe.

use loadprint_recording::journal::Status;
use loadprint_recording::rows::Rows;

/// Status, times and rows of the newest read.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether the read succeeded.
    pub status: Status,
    /// Start of the read (CLOCK_MONOTONIC).
    pub start_ns: i64,
    /// End of the read (CLOCK_MONOTONIC).
    pub end_ns: i64,
    /// Why the read failed or was skipped.
    pub reason: String,
    /// The rows; those of the previous read where a tick skips the probe.
    pub rows: Rows,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            status: Status::Skipped,
            start_ns: 0,
            end_ns: 0,
            reason: String::new(),
            rows: Rows::default(),
        }
    }
}
