//! Reads and writes the journal: one append-only file of checksummed frames, which `finish`
//! converts to tables. `docs/recording-format.md` has the grammar of the file; that of a tick is
//!
//! ```text
//! tick    := 'T' flags varint(tick) varint(missed) zigzag(intended) zigzag(start - intended) zigzag(realtime) section*
//! section := varint(probe) status zigzag(start - end before) varint(end - start) [varint(length) reason] varint(length) body
//! ```
//! A section has a reason if the status is failed or unavailable, or has [`WITH_REASON`] added to it. `intended` and `realtime` are
//! differences from the previous tick, in a key tick from 0. `body.rs` has the grammar of a body.
//!
//! The writer makes one `write` per tick and no allocation per value. For the reader, the first frame with a wrong
//! checksum ends the journal; the bytes from there on are counted as torn.

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::At;
use crate::Error;
use crate::FORMAT_VERSION;
use crate::Result;
use crate::body::Encoder;
use crate::files;
use crate::rows::Rows;
use crate::schema::Schema;
use crate::varint;

/// The first bytes of every journal; the last byte is the version of the frame grammar.
pub const MAGIC: &[u8; 8] = b"LPJRNL\0\x01";

/// Every 64th tick repeats all keys and values.
pub const KEY_TICK_EVERY: u64 = 64;

/// A larger length is damaged: no recorder writes such frames.
const MAX_FRAME: u32 = 1 << 30;

const KEY_TICK: u8 = 1;
/// Added to a status: the reason is what of a read could not be read, or what the probe waits for.
const WITH_REASON: u8 = 0x80;

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
    /// A signal to stop.
    Signal,
    /// The end of `--duration`.
    #[serde(alias = "deadline")]
    Duration,
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

/// An encoded tick.
#[derive(Debug)]
pub struct Tick<'a> {
    /// Number and times.
    pub stamp: Stamp,
    /// True if decoding can start here.
    pub is_key: bool,
    /// The probes that were read, in the order of the reads.
    pub sections: Vec<Section<'a>>,
}

/// The section of one probe.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Index of the probe in the header.
    pub probe: usize,
    /// The result of the read.
    pub status: Status,
    /// Start of the read (CLOCK_MONOTONIC).
    pub start_ns: i64,
    /// End of the read (CLOCK_MONOTONIC).
    pub end_ns: i64,
    /// Why the read failed, or what it could not read.
    pub reason: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Size of the complete frames in the file.
    length: u64,
    frame: Vec<u8>,
    body: Vec<u8>,
    probes: Vec<(usize, Encoder)>,
    written: u64,
    before: Option<Stamp>,
    now: Stamp,
    end_before: i64,
}

impl Writer {
    /// Creates the journal with its header in one step.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        let mut frame = vec![];
        put_json(&mut frame, b'H', path, header)?;
        let mut start = MAGIC.to_vec();
        start.extend_from_slice(&frame);
        let file = files::replace(path, |file| {
            file.write_all(&start).at(path)?;
            file.try_clone().at(path)
        })?;
        let probes = header
            .probes
            .iter()
            .map(|probe| (probe.schema.columns.len(), Encoder::default()))
            .collect();
        Ok(Self {
            file,
            path: path.to_owned(),
            length: start.len() as u64,
            frame,
            body: vec![],
            probes,
            written: 0,
            before: None,
            now: Stamp::default(),
            end_before: 0,
        })
    }

    /// Begins a tick. Calls of [`Writer::probe`] follow, then [`Writer::commit`].
    pub fn begin(&mut self, stamp: Stamp) {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; 8]);
        let is_key_tick = self.written.is_multiple_of(KEY_TICK_EVERY);
        if is_key_tick {
            self.probes.iter_mut().for_each(|(_, encoder)| encoder.reset());
        }
        let before = self.before.as_ref().filter(|_| !is_key_tick);
        put_stamp(&mut self.frame, &stamp, before);
        self.now = stamp;
        self.end_before = stamp.start_ns;
    }

    /// Appends the result of a read: `probe` is the index in the header.
    ///
    /// `rows` are written if the status is ok.
    pub fn probe(
        &mut self,
        probe: usize,
        status: Status,
        (start_ns, end_ns): (i64, i64),
        reason: &str,
        rows: &Rows,
    ) {
        let Some((width, encoder)) = self.probes.get_mut(probe) else {
            return;
        };
        let frame = &mut self.frame;
        varint::put(frame, probe as u64);
        let is_refused = matches!(status, Status::Failed | Status::Unavailable);
        let has_reason = !is_refused && !reason.is_empty();
        frame.push(status as u8 | if has_reason { WITH_REASON } else { 0 });
        varint::put_signed(frame, start_ns.wrapping_sub(self.end_before));
        varint::put(frame, end_ns.wrapping_sub(start_ns).cast_unsigned());
        self.end_before = end_ns;
        self.body.clear();
        if has_reason || is_refused {
            varint::put(frame, reason.len() as u64);
            frame.extend_from_slice(reason.as_bytes());
        }
        if status == Status::Ok {
            encoder.encode(rows, *width, &mut self.body);
        }
        varint::put(frame, self.body.len() as u64);
        frame.extend_from_slice(&self.body);
    }

    /// Writes the tick with one `write`. After an error the file ends with the previous tick.
    ///
    /// # Errors
    /// When the frame cannot be written completely.
    pub fn commit(&mut self) -> Result<()> {
        seal(&mut self.frame);
        self.append()?;
        self.written += 1;
        self.before = Some(self.now);
        Ok(())
    }

    /// Writes the end frame and closes the journal.
    ///
    /// # Errors
    /// When the frame cannot be written; the journal then counts as torn but has all ticks.
    pub fn end(mut self, end: &End) -> Result<()> {
        self.frame.clear();
        put_json(&mut self.frame, b'E', &self.path, end)?;
        self.append()
    }

    fn append(&mut self) -> Result<()> {
        if let Err(error) = self.file.write_all(&self.frame) {
            // Remove a partial frame. If this fails as well, the reader drops the frame by its
            // checksum.
            drop(self.file.set_len(self.length));
            return Err(error).at(&self.path);
        }
        self.length += self.frame.len() as u64;
        Ok(())
    }
}

/// Appends a frame: the tag and `value` as JSON.
fn put_json(frame: &mut Vec<u8>, tag: u8, path: &Path, value: &impl Serialize) -> Result<()> {
    frame.extend_from_slice(&[0; 8]);
    frame.push(tag);
    serde_json::to_writer(&mut *frame, value).at(path)?;
    seal(frame);
    Ok(())
}

/// Sets the length and the checksum of the payload.
fn seal(frame: &mut [u8]) {
    let (head, payload) = frame.split_at_mut(8);
    head[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp, before: Option<&Stamp>) {
    let (intended, realtime) = before.map_or((0, 0), |before| (before.intended_ns, before.realtime_ns));
    out.push(b'T');
    out.push(if before.is_none() { KEY_TICK } else { 0 });
    varint::put(out, u64::from(stamp.tick));
    varint::put(out, u64::from(stamp.missed));
    varint::put_signed(out, stamp.intended_ns.wrapping_sub(intended));
    varint::put_signed(out, stamp.start_ns.wrapping_sub(stamp.intended_ns));
    varint::put_signed(out, stamp.realtime_ns.wrapping_sub(realtime));
}

/// A journal that is read frame by frame.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    header: Header,
    /// Size of the file when it was opened.
    total: u64,
    /// Bytes of the valid frames so far.
    valid: u64,
    payload: Vec<u8>,
    before: Option<Stamp>,
}

/// A frame after the header.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A tick.
    Tick(Tick<'a>),
    /// The end of a recording that was not killed.
    End(End),
}

impl Reader {
    /// Opens the journal at `path` and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, is not a journal, has another version, or its header is
    /// damaged or forged.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).at(path)?;
        let total = file.metadata().at(path)?.len();
        let mut file = BufReader::with_capacity(256 * 1024, file);
        let mut magic = Vec::new();
        file.by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut magic)
            .at(path)?;
        if magic.is_empty() {
            return Err(Error::format(path, "empty file without a recording; remove it"));
        }
        if magic != MAGIC {
            let known = magic.len() == MAGIC.len() && magic[..7] == MAGIC[..7];
            let message = if known {
                "a journal of another version; use the loadprint-collect that wrote it"
            } else {
                "not a journal"
            };
            return Err(Error::format(path, message));
        }
        let mut payload = Vec::new();
        let damaged = || Error::format(path, "the journal's header is damaged; the recording is lost");
        if !read_frame(&mut file, &mut payload, total - MAGIC.len() as u64).at(path)? {
            return Err(damaged());
        }
        let json = payload.strip_prefix(b"H").ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(json).map_err(|_| damaged())?;
        if header.format_version != FORMAT_VERSION {
            let message = format!(
                "format version {}, but this program reads {FORMAT_VERSION}; use the loadprint-collect that wrote it",
                header.format_version
            );
            return Err(Error::format(path, message));
        }
        // The names of tables come from here.
        let is_plain = |name: &str| Path::new(name).file_name() == Some(OsStr::new(name));
        if let Some(probe) = header.probes.iter().find(|probe| !is_plain(&probe.name)) {
            let message = format!("`{}` is not a file name", probe.name);
            return Err(Error::format(path, message));
        }
        let valid = (MAGIC.len() + 8 + payload.len()) as u64;
        Ok(Self {
            file,
            path: path.to_owned(),
            header,
            total,
            valid,
            payload,
            before: None,
        })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next frame, or `None` after the last valid one.
    ///
    /// # Errors
    /// When the file cannot be read, or a frame with a correct checksum cannot be decoded.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        if !read_frame(&mut self.file, &mut self.payload, self.total - self.valid).at(&self.path)? {
            return Ok(None);
        }
        let offset = self.valid;
        self.valid += 8 + self.payload.len() as u64;
        let malformed = || {
            let message = format!("the frame at byte {offset} cannot be decoded");
            Error::format(&self.path, message)
        };
        if let Some(json) = self.payload.strip_prefix(b"E") {
            return serde_json::from_slice(json)
                .map(|end| Some(Frame::End(end)))
                .map_err(|_| malformed());
        }
        let tick = Tick::parse(&self.payload, self.before.as_ref()).ok_or_else(malformed)?;
        self.before = Some(tick.stamp);
        Ok(Some(Frame::Tick(tick)))
    }

    /// Bytes after the last valid frame that was read; final once [`Reader::next_frame`] has
    /// returned `None`.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.total - self.valid
    }
}

/// Reads one frame's payload; false if the `left` bytes do not start with a valid frame.
fn read_frame(file: &mut impl Read, payload: &mut Vec<u8>, left: u64) -> std::io::Result<bool> {
    payload.clear();
    let (mut length, mut checksum) = ([0; 4], [0; 4]);
    for head in [&mut length, &mut checksum] {
        match file.read_exact(head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
    }
    let length = u32::from_le_bytes(length);
    // A file system may fill the end of the file with zero bytes after a power loss.
    if length == 0 || length > MAX_FRAME || u64::from(length) + 8 > left {
        return Ok(false);
    }
    file.take(u64::from(length)).read_to_end(payload)?;
    let whole = payload.len() as u64 == u64::from(length);
    Ok(whole && crc32c::crc32c(payload) == u32::from_le_bytes(checksum))
}

impl<'a> Tick<'a> {
    /// Decodes a payload except the bodies of its sections; `before` is the stamp of the previous tick.
    fn parse(payload: &'a [u8], before: Option<&Stamp>) -> Option<Self> {
        let mut rest = payload.strip_prefix(b"T")?;
        let is_key = varint::take_bytes(&mut rest, 1)?[0] & KEY_TICK != 0;
        let (intended, realtime) = match before {
            _ if is_key => (0, 0),
            Some(before) => (before.intended_ns, before.realtime_ns),
            None => return None,
        };
        let tick = u32::try_from(varint::take(&mut rest)?).ok()?;
        let missed = u32::try_from(varint::take(&mut rest)?).ok()?;
        let intended_ns = intended.wrapping_add(varint::take_signed(&mut rest)?);
        let start_ns = intended_ns.wrapping_add(varint::take_signed(&mut rest)?);
        let realtime_ns = realtime.wrapping_add(varint::take_signed(&mut rest)?);
        let stamp = Stamp {
            tick,
            intended_ns,
            start_ns,
            realtime_ns,
            missed,
        };
        let mut sections = vec![];
        let mut end_before = start_ns;
        while !rest.is_empty() {
            let section = Section::take(&mut rest, end_before)?;
            end_before = section.end_ns;
            sections.push(section);
        }
        Some(Self {
            stamp,
            is_key,
            sections,
        })
    }
}

impl<'a> Section<'a> {
    fn take(rest: &mut &'a [u8], end_before: i64) -> Option<Self> {
        let probe = usize::try_from(varint::take(rest)?).ok()?;
        let byte = varint::take_bytes(rest, 1)?[0];
        let status = Status::from_byte(byte & !WITH_REASON)?;
        let start_ns = end_before.wrapping_add(varint::take_signed(rest)?);
        let end_ns = start_ns.wrapping_add(varint::take(rest)?.cast_signed());
        let is_refused = matches!(status, Status::Failed | Status::Unavailable);
        let reason = if is_refused || byte & WITH_REASON != 0 {
            let length = varint::take(rest)?;
            Some(str::from_utf8(varint::take_bytes(rest, length)?).ok()?)
        } else {
            None
        };
        let length = varint::take(rest)?;
        Some(Self {
            probe,
            status,
            start_ns,
            end_ns,
            reason,
            body: varint::take_bytes(rest, length)?,
        })
    }
}
