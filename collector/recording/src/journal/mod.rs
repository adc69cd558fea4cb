//! The journal: one append-only file of checksummed frames, written while recording and turned into tables by `finish`.
//!
//! The grammar is in `docs/recording-format.md`. The writer makes one `write` per tick and keeps its buffers.

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

/// The first bytes of every journal; the last of them is the version of the frame grammar.
pub const MAGIC: &[u8; 8] = b"LPJRNL\0\x01";

/// A tick that repeats all keys and values comes after this many.
pub const KEY_TICK_EVERY: u64 = 64;

/// Frames larger than this are refused when read: no recorder writes them, so the length is damaged.
const MAX_FRAME: u32 = 1 << 30;

/// How a probe stood when the recording started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeStatus {
    /// It is read at every tick (or every n-th).
    Running,
    /// It was not asked for.
    Off,
    /// It cannot be read on this host; the reason says why and what would make it work.
    Unavailable,
}

/// What happened to a probe at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was read.
    Ok = 0,
    /// It could not be read; the reason says why. There are no rows.
    Failed = 1,
    /// It cannot be read on this host; at the first tick only.
    Unavailable = 2,
    /// It is read every n-th tick, and this is another one.
    Skipped = 3,
}

impl Status {
    /// The word in `ticks.parquet`.
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
    /// Its name, which is the table's name.
    pub name: String,
    /// How it stood at the start.
    pub status: ProbeStatus,
    /// Why it is not running.
    pub reason: Option<String>,
    /// What its rows mean.
    pub schema: Schema,
}

/// The first frame: everything that does not change while recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`crate::FORMAT_VERSION`].
    pub format_version: u32,
    /// The recorder's role: `server`, `load`, …
    pub role: String,
    /// The time between ticks.
    pub interval_ns: i64,
    /// The boot within which monotonic stamps may be compared.
    pub boot_id: String,
    /// Program and version.
    pub writer: String,
    /// Both clocks when the header was written.
    pub started_monotonic_ns: i64,
    /// Both clocks when the header was written.
    pub started_realtime_ns: i64,
    /// All probes, also those that are not running.
    pub probes: Vec<ProbeHeader>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// SIGTERM or SIGINT.
    Signal,
    /// `--duration` was over.
    Duration,
    /// `--deadline` was reached.
    Deadline,
    /// There is no end frame: the recorder was killed, or the disk was full.
    Torn,
}

/// The last frame of a recording that ended in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why it ended.
    pub ended: Ended,
    /// Number of the last tick; `None` if there was none.
    pub last_tick: Option<u32>,
    /// Ticks missed over the whole recording.
    pub missed: u64,
}

/// The stamps of one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its number from 0; missed ticks have numbers too.
    pub tick: u32,
    /// When it was due, CLOCK_MONOTONIC.
    pub intended_ns: i64,
    /// When reading began, CLOCK_MONOTONIC.
    pub start_ns: i64,
    /// CLOCK_REALTIME, read with `start_ns`.
    pub realtime_ns: i64,
    /// Ticks missed since the one before.
    pub missed: u32,
}
