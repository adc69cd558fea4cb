//! Encodes and decodes the rows of one probe at one tick as differences from the previous tick.
//! `tick.rs` has the grammar.

use std::collections::HashMap;

use indexmap::IndexSet;

use super::Section;
use super::varint;
use crate::rows::Rows;
use crate::rows::Value;
use crate::schema::Schema;
use crate::schema::Type;

const SAME_KEYS: u8 = 1;
const SAME_NULLS: u8 = 2;
/// The longest list that a reader accepts.
const MAX_LIST: usize = 1 << 16;

/// State that encoder and decoder keep of a probe since the last key tick.
#[derive(Debug, Default)]
struct State {
    /// Encoded entities by number.
    keys: IndexSet<Box<[u8]>>,
    /// Key numbers of the previous tick's rows.
    order: Vec<u32>,
    /// Missing cells by key number, one bit per column.
    nulls: Vec<u64>,
    /// Last values by key number and column.
    values: Vec<u64>,
    /// Last buckets by key number and column, for columns that hold buckets.
    lists: HashMap<usize, Vec<u64>>,
    /// Strings by number.
    texts: IndexSet<Box<[u8]>>,
}

impl State {
    fn add_key(&mut self, key: &[u8], width: usize) -> usize {
        let (number, is_new) = self.keys.insert_full(key.into());
        if is_new {
            self.nulls.push(0);
            self.values.resize(self.values.len() + width, 0);
        }
        number
    }
}

/// Encodes the rows of one probe.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    state: State,
    order: Vec<u32>,
    nulls: Vec<u64>,
    /// Generation of the previous tick's rows; 0 after a key tick.
    generation: u64,
    /// True if any row of `state` has a missing cell.
    has_nulls: bool,
}

impl Encoder {
    /// Appends the encoded `rows` to `out`; every row has `width` cells.
    pub(super) fn encode(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) {
        if rows.is_empty() {
            return;
        }
        let flags = out.len();
        out.push(0);
        if self.encode_keys(rows, width, out) {
            out[flags] |= SAME_KEYS;
        }
        if self.encode_nulls(rows, width, out) {
            out[flags] |= SAME_NULLS;
        }
        // Most cells need one byte.
        out.reserve(rows.len() * width * 2);
        for (row, &number) in self.order.iter().enumerate() {
            let first = number as usize * width;
            if rows.are_numbers() {
                let before = &mut self.state.values[first..first + width];
                for (bits, before) in rows.numbers(row, width).zip(before) {
                    if let Some(bits) = bits {
                        varint::put_signed(out, bits.wrapping_sub(*before).cast_signed());
                        *before = bits;
                    }
                }
                continue;
            }
            for column in 0..width {
                let slot = first + column;
                match rows.value(row, column, width) {
                    Value::Null => {}
                    Value::Bits(bits) => {
                        let before = &mut self.state.values[slot];
                        varint::put_signed(out, bits.wrapping_sub(*before).cast_signed());
                        *before = bits;
                    }
                    Value::Text(text) => encode_text(&mut self.state, slot, text, out),
                    Value::List(list) => {
                        encode_list(self.state.lists.entry(slot).or_default(), list, out);
                    }
                }
            }
        }
        std::mem::swap(&mut self.order, &mut self.state.order);
    }

    /// Discards the state, for a key tick.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Fills `self.order`; writes nothing and returns true if the entities are those of the
    /// previous tick.
    fn encode_keys(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) -> bool {
        let state = &mut self.state;
        let is_unchanged = self.generation == rows.generation() && state.order.len() == rows.len();
        self.generation = rows.generation();
        self.order.clear();
        if is_unchanged {
            self.order.extend_from_slice(&state.order);
            return true;
        }
        varint::put(out, rows.len() as u64);
        for row in 0..rows.len() {
            let key = rows.key(row);
            let number = state.keys.get_index_of(key);
            varint::put(out, number.map_or(0, |number| number as u64 + 1));
            let number = number.unwrap_or_else(|| {
                out.extend_from_slice(key);
                state.add_key(key, width)
            });
            self.order.push(number as u32);
        }
        false
    }

    /// Writes nothing and returns true if the same cells are missing as in the previous tick.
    fn encode_nulls(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) -> bool {
        if !rows.has_nulls() && !self.has_nulls {
            return true;
        }
        self.has_nulls = true;
        self.nulls.clear();
        let mut same = true;
        for (row, &number) in self.order.iter().enumerate() {
            let mask = rows.missing(row, width);
            same &= self.state.nulls[number as usize] == mask;
            self.nulls.push(mask);
        }
        if !same {
            for (&number, &mask) in self.order.iter().zip(&self.nulls) {
                varint::put(out, mask);
                self.state.nulls[number as usize] = mask;
            }
        }
        same
    }
}

/// Texts are numbered in the order of their first occurrence; `slot` has number + 1 of the cell's
/// last text.
fn encode_text(state: &mut State, slot: usize, text: &[u8], out: &mut Vec<u8>) {
    let before = &mut state.values[slot];
    let last = (*before as usize)
        .checked_sub(1)
        .and_then(|last| state.texts.get_index(last));
    // Usually it is the last one, which needs no hash.
    if last.is_none_or(|last| **last != *text) {
        let Some(number) = state.texts.get_index_of(text) else {
            varint::put(out, 0);
            varint::put(out, text.len() as u64);
            out.extend_from_slice(text);
            state.texts.insert(text.into());
            *before = state.texts.len() as u64;
            return;
        };
        *before = number as u64 + 1;
    }
    varint::put(out, *before);
}

/// Encodes a list: its length, then runs of the count of unchanged buckets, the count of changed
/// ones, and their differences.
pub(crate) fn encode_list(before: &mut Vec<u64>, list: &[u64], out: &mut Vec<u8>) {
    varint::put(out, list.len() as u64);
    before.resize(list.len(), 0);
    let mut place = 0;
    while place < list.len() {
        let same = run(place, list, before, true);
        let changed = run(place + same, list, before, false);
        varint::put(out, same as u64);
        varint::put(out, changed as u64);
        let range = place + same..place + same + changed;
        for (value, before) in list[range.clone()].iter().zip(&mut before[range]) {
            varint::put_signed(out, value.wrapping_sub(*before).cast_signed());
            *before = *value;
        }
        place += same + changed;
    }
}

/// The number of buckets from `place` on that are unchanged (`same`), or changed.
fn run(place: usize, list: &[u64], before: &[u64], same: bool) -> usize {
    let pairs = list[place..].iter().zip(&before[place..]);
    pairs
        .take_while(|(value, before)| (value == before) == same)
        .count()
}

/// Adds the differences of a list to its previous values; `None` if the bytes are invalid.
pub(crate) fn take_list(list: &mut Vec<u64>, body: &mut &[u8]) -> Option<()> {
    let length = usize::try_from(varint::take(body)?).ok()?;
    // A damaged length must not allocate state.
    if length > MAX_LIST {
        return None;
    }
    list.resize(length, 0);
    let mut rest = list.as_mut_slice();
    while !rest.is_empty() {
        let same = usize::try_from(varint::take(body)?).ok()?;
        let changed = usize::try_from(varint::take(body)?).ok()?;
        if same == 0 && changed == 0 {
            return None;
        }
        rest = rest.get_mut(same..)?;
        let (run, behind) = rest.split_at_mut_checked(changed)?;
        for value in run {
            *value = value.wrapping_add(varint::take_signed(body)?.cast_unsigned());
        }
        rest = behind;
    }
    Some(())
}

/// Decodes the rows of one probe, tick by tick from a key tick on.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    entities: usize,
    types: Vec<Type>,
    row_nulls: Vec<u64>,
}

impl Decoder {
    /// A decoder for a probe with `schema`.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self {
            state: State::default(),
            entities: schema.entity.len(),
            types: schema.columns.iter().map(|column| column.storage).collect(),
            row_nulls: vec![],
        }
    }

    /// Discards the state. Call it at every key tick before decoding its sections.
    pub fn reset(&mut self) {
        self.state = State::default();
    }

    /// Replaces `rows` by the rows of `section`; `None` if the bytes are invalid.
    pub fn decode(&mut self, section: &Section<'_>, rows: &mut Rows) -> Option<()> {
        rows.clear();
        let mut body = section.body;
        let Some((&flags, rest)) = body.split_first() else {
            return Some(());
        };
        body = rest;
        if flags & SAME_KEYS == 0 {
            self.take_keys(&mut body)?;
        }
        self.row_nulls.clear();
        for &number in &self.state.order {
            let nulls = &mut self.state.nulls[number as usize];
            if flags & SAME_NULLS == 0 {
                *nulls = varint::take(&mut body)?;
            }
            self.row_nulls.push(*nulls);
        }
        for row in 0..self.state.order.len() {
            self.take_row(row, &mut body, rows)?;
        }
        body.is_empty().then_some(())
    }

    fn take_keys(&mut self, body: &mut &[u8]) -> Option<()> {
        let count = varint::take(body)?;
        self.state.order.clear();
        for _ in 0..count {
            let number = match varint::take(body)? {
                0 => {
                    let start = *body;
                    for _ in 0..self.entities {
                        let length = varint::take(body)?;
                        varint::take_bytes(body, length)?;
                    }
                    self.state
                        .add_key(&start[..start.len() - body.len()], self.types.len())
                }
                number => usize::try_from(number - 1).ok()?,
            };
            if number >= self.state.keys.len() {
                return None;
            }
            self.state.order.push(number as u32);
        }
        Some(())
    }

    fn take_row(&mut self, row: usize, body: &mut &[u8], rows: &mut Rows) -> Option<()> {
        let state = &mut self.state;
        let number = state.order[row] as usize;
        rows.row_encoded(&state.keys[number]);
        for (column, storage) in self.types.iter().enumerate() {
            let slot = number * self.types.len() + column;
            if self.row_nulls[row] & 1 << column != 0 {
                rows.null();
                continue;
            }
            match storage {
                Type::Uint64 | Type::Int64 | Type::Double => {
                    let value = state.values[slot].wrapping_add(varint::take_signed(body)?.cast_unsigned());
                    state.values[slot] = value;
                    rows.uint(value);
                }
                Type::Text => {
                    let mut text = varint::take(body)?;
                    if text == 0 {
                        let length = varint::take(body)?;
                        let number = state
                            .texts
                            .insert_full(varint::take_bytes(body, length)?.into())
                            .0;
                        text = number as u64 + 1;
                    }
                    rows.text(state.texts.get_index(usize::try_from(text - 1).ok()?)?);
                }
                Type::Buckets => {
                    let list = state.lists.entry(slot).or_default();
                    take_list(list, body)?;
                    rows.list(list);
                }
            }
        }
        Some(())
    }
}
