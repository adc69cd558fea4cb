//! Writes a journal with one `write` per tick and without an allocation per value.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use super::End;
use super::Header;
use super::KEY_TICK_EVERY;
use super::MAGIC;
use super::Stamp;
use super::Status;
use super::body::Encoder;
use super::tick::WITH_REASON;
use super::tick::put_stamp;
use super::varint;
use crate::At;
use crate::Result;
use crate::files;
use crate::rows::Rows;

/// An open journal.
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
    /// `reason` is written unless the status is skipped, `rows` if it is ok.
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
        let is_partial = status == Status::Ok && !reason.is_empty();
        frame.push(status as u8 | if is_partial { WITH_REASON } else { 0 });
        varint::put_signed(frame, start_ns.wrapping_sub(self.end_before));
        varint::put(frame, end_ns.wrapping_sub(start_ns).cast_unsigned());
        self.end_before = end_ns;
        self.body.clear();
        if is_partial || matches!(status, Status::Failed | Status::Unavailable) {
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
