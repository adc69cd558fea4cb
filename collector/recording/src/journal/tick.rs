//! Encodes and decodes one tick: its times, then a section per probe with differences from the
//! previous tick.
//!
//! ```text
//! tick    := 'T' flags varint(tick) varint(missed) zigzag(intended) zigzag(start - intended) zigzag(realtime) section*
//! section := varint(probe) status zigzag(start - end before) varint(end - start) [varint(length) reason] varint(length) body
//! body    := empty | flags [varint(rows) key*] [varint(nulls)*] cell*
//! key     := 0 entity | varint(number + 1)          entity := (varint(length) bytes)*, one per entity column
//! cell    := zigzag(value - before) | text | varint(buckets) zigzag(value - before)*
//! text    := 0 varint(length) bytes | varint(number + 1)
//! ```
//! A section has a reason if the status is failed or unavailable, or has [`WITH_REASON`] added to it. `intended` and `realtime` are
//! differences from the previous tick, in a key tick from 0.

use super::Stamp;
use super::Status;
use super::varint;

pub(super) const KEY_TICK: u8 = 1;
/// Added to a status: it was read, and the reason is what of it could not be read.
pub(super) const WITH_REASON: u8 = 0x80;

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
    pub(super) body: &'a [u8],
}

pub(super) fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp, before: Option<&Stamp>) {
    let (intended, realtime) = before.map_or((0, 0), |before| (before.intended_ns, before.realtime_ns));
    out.push(b'T');
    out.push(if before.is_none() { KEY_TICK } else { 0 });
    varint::put(out, u64::from(stamp.tick));
    varint::put(out, u64::from(stamp.missed));
    varint::put_signed(out, stamp.intended_ns.wrapping_sub(intended));
    varint::put_signed(out, stamp.start_ns.wrapping_sub(stamp.intended_ns));
    varint::put_signed(out, stamp.realtime_ns.wrapping_sub(realtime));
}

impl<'a> Tick<'a> {
    /// Decodes a payload except the bodies of its sections; `before` is the stamp of the previous tick.
    pub(super) fn parse(payload: &'a [u8], before: Option<&Stamp>) -> Option<Self> {
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
