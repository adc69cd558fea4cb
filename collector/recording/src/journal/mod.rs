//! Reads and writes the journal: one append-only file of checksummed frames, which `finish`
//! converts to tables.
//!
//! `docs/recording-format.md` has the grammar. The writer makes one `write` per tick and reuses its
//! buffers.

pub(crate) mod body;
mod reader;
mod tick;
pub(crate) mod varint;
mod writer;

use serde::Deserialize;
use serde::Serialize;

use crate::schema::Schema;
pub use body::Decoder;
pub use reader::Frame;
pub use reader::Reader;
pub use tick::Section;
pub use tick::Tick;
pub use writer::Writer;

/// The first bytes of every journal; the last byte is the version of the frame grammar.
pub const MAGIC: &[u8; 8] = b"LPJRNL\0\x01";

/// Every 64th tick repeats all keys and values.
pub const KEY_TICK_EVERY: u64 = 64;

/// A larger length is damaged: no recorder writes such frames.
const MAX_FRAME: u32 = 1 << 30;

/// The status of a probe at the start of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeStatus {
    /// Read at every tick, or every nth.
    Running,
    /// Not selected.
    Off,
    /// Cannot be read on this host; the reason contains the cause and the fix.
    Unavailable,
}

/// The result of a probe's read at a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Read.
    Ok = 0,
    /// Failed, with a reason and without rows.
    Failed = 1,
    /// Cannot be read on this host; at the first tick only.
    Unavailable = 2,
    /// Not due at this tick, or the read has not ended yet.
    #[default]
    Skipped = 3,
}

impl Status {
    /// The value in `ticks.parquet`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
            Self::Skipped => "skipped",
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Ok, Self::Failed, Self::Unavailable, Self::Skipped]
            .into_iter()
            .find(|status| *status as u8 == byte)
    }
}

/// One probe in the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeHeader {
    /// The name of the probe and of its table.
    pub name: String,
    /// The status at the start.
    pub status: ProbeStatus,
    /// Why it is not running.
    pub reason: Option<String>,
    /// The schema of its rows.
    pub schema: Schema,
}

/// The first frame: facts that do not change during the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`crate::FORMAT_VERSION`].
    pub format_version: u32,
    /// The recorder's role: `server`, `load`, …
    pub role: String,
    /// The time between ticks.
    pub interval_ns: i64,
    /// The boot ID; times of CLOCK_MONOTONIC are comparable within one boot.
    pub boot_id: String,
    /// Program and version.
    pub writer: String,
    /// CLOCK_MONOTONIC at the start.
    pub started_monotonic_ns: i64,
    /// CLOCK_REALTIME at the start.
    pub started_realtime_ns: i64,
    /// All probes, including those that are not running.
    pub probes: Vec<ProbeHeader>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// SIGTERM or SIGINT.
    Signal,
    /// The end of `--duration`.
    Duration,
    /// The `--deadline`.
    Deadline,
    /// Unknown, without an end frame: the recorder was killed, or the disk was full.
    Torn,
}

/// The last frame of a recording that was not killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why it ended.
    pub ended: Ended,
    /// Number of the last tick; `None` without ticks.
    pub last_tick: Option<u32>,
    /// Ticks missed in the whole recording.
    pub missed: u64,
}

/// The number and the times of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Number from 0; missed ticks have numbers, too.
    pub tick: u32,
    /// Due time (CLOCK_MONOTONIC).
    pub intended_ns: i64,
    /// Start of the reads (CLOCK_MONOTONIC).
    pub start_ns: i64,
    /// Start of the reads (CLOCK_REALTIME).
    pub realtime_ns: i64,
    /// Ticks missed directly before this one.
    pub missed: u32,
}
