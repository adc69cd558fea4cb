//! Reads a journal frame by frame; what does not hold its checksum ends it and is counted, not guessed at.

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
use crate::files::RunFile;

/// An open journal.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    header: Header,
    /// Bytes of the file when it was opened.
    total: u64,
    /// Bytes of whole frames so far.
    good: u64,
    payload: Vec<u8>,
    before: Option<Stamp>,
}

/// What a frame after the header holds.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A tick.
    Tick(Tick<'a>),
    /// The recording ended in order.
    End(End),
}

impl Reader {
    /// Opens `path`, which is no link, and reads its header.
    ///
    /// # Errors
    /// As [`Reader::of`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(&RunFile::at(path)?)
    }

    /// Opens `file` and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, is not a journal, is of another version, or its header is damaged.
    pub fn of(file: &RunFile) -> Result<Self> {
        let (path, file) = (&*file.path(), file.open()?);
        let total = file.metadata().at(path)?.len();
        let mut file = BufReader::with_capacity(256 * 1024, file);
        let mut magic = Vec::new();
        file.by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut magic)
            .at(path)?;
        if magic.is_empty() {
            return Err(Error::format(path, "empty: nothing was recorded; remove it"));
        }
        if magic != MAGIC {
            let known = magic.len() == MAGIC.len() && magic[..7] == MAGIC[..7];
            let what = if known {
                "a journal of another version; use the loadprint-collect that wrote it"
            } else {
                "not a journal"
            };
            return Err(Error::format(path, what));
        }
        let mut payload = Vec::new();
        let damaged = || Error::format(path, "the journal's header is damaged: nothing of it can be read");
        if !read_frame(&mut file, &mut payload, total - MAGIC.len() as u64).at(path)? {
            return Err(damaged());
        }
        let json = payload.strip_prefix(b"H").ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(json).map_err(|_| damaged())?;
        if header.format_version != FORMAT_VERSION {
            let message = format!(
                "format version {}, this program reads {FORMAT_VERSION}",
                header.format_version
            );
            return Err(Error::format(path, message));
        }
        let good = (MAGIC.len() + 8 + payload.len()) as u64;
        Ok(Self {
            file,
            path: path.to_owned(),
            header,
            total,
            good,
            payload,
            before: None,
        })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next frame, or `None` where the whole frames end.
    ///
    /// # Errors
    /// When the file cannot be read, or a frame with a good checksum is not one that a writer makes.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        if !read_frame(&mut self.file, &mut self.payload, self.total - self.good).at(&self.path)? {
            return Ok(None);
        }
        let place = self.good;
        self.good += 8 + self.payload.len() as u64;
        let malformed = || Error::format(&self.path, format!("the frame at byte {place} does not decode"));
        if let Some(json) = self.payload.strip_prefix(b"E") {
            return serde_json::from_slice(json)
                .map(|end| Some(Frame::End(end)))
                .map_err(|_| malformed());
        }
        let tick = Tick::parse(&self.payload, self.before.as_ref()).ok_or_else(malformed)?;
        self.before = Some(tick.stamp);
        Ok(Some(Frame::Tick(tick)))
    }

    /// Bytes behind the last whole frame that was read; final once [`Reader::next_frame`] has returned `None`.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.total - self.good
    }
}

/// Reads one frame's payload; false if there is no whole frame with a good checksum in the `left` bytes.
fn read_frame(file: &mut impl Read, payload: &mut Vec<u8>, left: u64) -> std::io::Result<bool> {
    payload.clear();
    let mut head = [0; 8];
    match file.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    // A length of zero would be a run of zero bytes, which file systems leave behind after a power loss.
    if length == 0 || length > MAX_FRAME || u64::from(length) + 8 > left {
        return Ok(false);
    }
    file.take(u64::from(length)).read_to_end(payload)?;
    let whole = payload.len() as u64 == u64::from(length);
    Ok(whole && crc32c::crc32c(payload) == u32::from_le_bytes([c0, c1, c2, c3]))
}
