//! Reads a journal frame by frame. The first frame with a wrong checksum ends it; the bytes from
//! there on are counted as torn.

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::io::ErrorKind;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use super::End;
use super::Header;
use super::MAGIC;
use super::MAX_FRAME;
use super::Stamp;
use super::tick::Tick;
use crate::At;
use crate::Error;
use crate::FORMAT_VERSION;
use crate::Result;

/// An open journal.
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
