//! Encodes the rows of one probe at one tick as differences from the previous tick, and decodes them into the
//! columns of a whole recording.
//!
//! ```text
//! body    := empty | flags [varint(rows) key*] [varint(nulls)*] cell*
//! key     := 0 entity | varint(number + 1)          entity := (varint(length) bytes)*, one per entity column
//! cell    := zigzag(value - before) | text | list
//! text    := 0 varint(length) bytes | varint(number + 1)
//! list    := varint(buckets) run*                   run := varint(unchanged) varint(changed) zigzag(value - before)*
//! ```
//! Numbers of keys and texts, and the values before, count from the last key tick.

use std::collections::HashMap;

use indexmap::IndexSet;

use crate::rows::Rows;
use crate::rows::Value;
use crate::schema::Schema;
use crate::schema::Type;
use crate::varint;

const SAME_KEYS: u8 = 1;
const SAME_NULLS: u8 = 2;
/// The longest list that a reader accepts.
const MAX_LIST: usize = 1 << 16;

/// Encodes the rows of one probe; all of it refers to the ticks since the last key tick.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// Encoded entities by number.
    keys: IndexSet<Box<[u8]>>,
    /// Key numbers of this tick's rows and of the previous tick's.
    order: Vec<u32>,
    order_before: Vec<u32>,
    /// Missing cells by row, and those before by key number; one bit per column.
    nulls: Vec<u64>,
    nulls_before: Vec<u64>,
    /// Last values by key number and column.
    values: Vec<u64>,
    /// Last buckets by key number and column, for columns that hold buckets.
    lists: HashMap<usize, Vec<u64>>,
    /// Strings by number.
    texts: IndexSet<Box<[u8]>>,
    /// Generation of the previous tick's rows; 0 after a key tick.
    generation: u64,
}

impl Encoder {
    /// Appends the encoded `rows` to `out`; every row has `width` cells.
    pub(crate) fn encode(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) {
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
            for column in 0..width {
                let slot = first + column;
                match rows.value(row, column, width) {
                    Value::Null => {}
                    Value::Bits(bits) => {
                        let before = &mut self.values[slot];
                        varint::put_signed(out, bits.wrapping_sub(*before).cast_signed());
                        *before = bits;
                    }
                    Value::Text(text) => encode_text(&mut self.texts, &mut self.values[slot], text, out),
                    Value::List(list) => encode_list(self.lists.entry(slot).or_default(), list, out),
                }
            }
        }
        std::mem::swap(&mut self.order, &mut self.order_before);
    }

    /// Discards the state, for a key tick.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Fills `self.order`; writes nothing and returns true if the entities are those of the
    /// previous tick.
    fn encode_keys(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) -> bool {
        let is_unchanged = self.generation == rows.generation() && self.order_before.len() == rows.len();
        self.generation = rows.generation();
        self.order.clear();
        if is_unchanged {
            self.order.extend_from_slice(&self.order_before);
            return true;
        }
        varint::put(out, rows.len() as u64);
        for row in 0..rows.len() {
            let key = rows.key(row);
            let number = self.keys.get_index_of(key);
            varint::put(out, number.map_or(0, |number| number as u64 + 1));
            let number = number.unwrap_or_else(|| {
                out.extend_from_slice(key);
                self.nulls_before.push(0);
                self.values.resize(self.values.len() + width, 0);
                self.keys.insert_full(key.into()).0
            });
            self.order.push(number as u32);
        }
        false
    }

    /// Writes nothing and returns true if the same cells are missing as in the previous tick.
    fn encode_nulls(&mut self, rows: &Rows, width: usize, out: &mut Vec<u8>) -> bool {
        self.nulls.clear();
        let mut same = true;
        for (row, &number) in self.order.iter().enumerate() {
            let mask = rows.missing(row, width);
            same &= self.nulls_before[number as usize] == mask;
            self.nulls.push(mask);
        }
        if !same {
            for (&number, &mask) in self.order.iter().zip(&self.nulls) {
                varint::put(out, mask);
                self.nulls_before[number as usize] = mask;
            }
        }
        same
    }
}

/// Texts are numbered in the order of their first occurrence; `before` is number + 1 of the cell's last text.
fn encode_text(texts: &mut IndexSet<Box<[u8]>>, before: &mut u64, text: &[u8], out: &mut Vec<u8>) {
    let last = (*before as usize)
        .checked_sub(1)
        .and_then(|last| texts.get_index(last));
    // Usually it is the last one, which needs no hash.
    if last.is_none_or(|last| **last != *text) {
        let Some(number) = texts.get_index_of(text) else {
            varint::put(out, 0);
            varint::put(out, text.len() as u64);
            out.extend_from_slice(text);
            texts.insert(text.into());
            *before = texts.len() as u64;
            return;
        };
        *before = number as u64 + 1;
    }
    varint::put(out, *before);
}

/// Encodes a list: its length, then runs of the count of unchanged buckets, the count of changed
/// ones, and their differences.
fn encode_list(before: &mut Vec<u64>, list: &[u64], out: &mut Vec<u8>) {
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
fn take_list(list: &mut Vec<u64>, body: &mut &[u8]) -> Option<()> {
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

/// The rows of one probe in a whole journal, by column.
#[derive(Debug)]
pub(crate) struct Columns {
    entities: usize,
    types: Vec<Type>,
    since_key_tick: SinceKeyTick,
    /// Encoded entities.
    pub(crate) keys: IndexSet<Box<[u8]>>,
    texts: IndexSet<Box<[u8]>>,
    /// Lists as the journal has them, as differences: an hour of whole lists does not fit into memory.
    lists: Vec<u8>,
    /// Per row: the place of its entity in `keys`.
    pub(crate) row_keys: Vec<u32>,
    /// Per row: the number of its tick.
    pub(crate) ticks: Vec<u32>,
    /// Per row: missing cells, one bit per column.
    nulls: Vec<u64>,
    /// Per column and row: the bits of a number, the place of a text, or twice that of a list, plus one if
    /// the list is the first one of its entity since a key tick.
    cells: Vec<Vec<u64>>,
}

/// What the bytes of a probe refer to.
#[derive(Debug, Default)]
struct SinceKeyTick {
    /// Places of entities and texts in the columns, by number.
    keys: Vec<u32>,
    texts: Vec<u32>,
    /// Key numbers of the newest rows.
    order: Vec<u32>,
    /// Missing cells by key number.
    nulls: Vec<u64>,
    /// Last values by key number and column; 1 if there was a list.
    values: Vec<u64>,
    /// The buckets of any list: only their number matters until all rows are sorted.
    list: Vec<u64>,
}

impl Columns {
    pub(crate) fn new(schema: &Schema) -> Self {
        let types: Vec<_> = schema.columns.iter().map(|column| column.storage).collect();
        Self {
            entities: schema.entity.len(),
            since_key_tick: SinceKeyTick::default(),
            keys: IndexSet::new(),
            texts: IndexSet::new(),
            lists: vec![],
            row_keys: vec![],
            ticks: vec![],
            nulls: vec![],
            cells: vec![vec![]; types.len()],
            types,
        }
    }

    /// Discards what the previous ticks refer to. Call it at every key tick before its section.
    pub(crate) fn begin_key_tick(&mut self) {
        self.since_key_tick = SinceKeyTick::default();
    }

    /// Appends the rows of an encoded body; `None` if the bytes are invalid.
    pub(crate) fn push(&mut self, tick: u32, mut body: &[u8]) -> Option<()> {
        let Some(flags) = body.split_off_first() else {
            return Some(());
        };
        if flags & SAME_KEYS == 0 {
            self.take_keys(&mut body)?;
        }
        let first = self.nulls.len();
        let state = &mut self.since_key_tick;
        for &number in &state.order {
            let nulls = &mut state.nulls[number as usize];
            if flags & SAME_NULLS == 0 {
                *nulls = varint::take(&mut body)?;
            }
            self.row_keys.push(state.keys[number as usize]);
            self.ticks.push(tick);
            self.nulls.push(*nulls);
        }
        for row in 0..state.order.len() {
            self.take_row(row, self.nulls[first + row], &mut body)?;
        }
        body.is_empty().then_some(())
    }

    fn take_keys(&mut self, body: &mut &[u8]) -> Option<()> {
        let state = &mut self.since_key_tick;
        state.order.clear();
        for _ in 0..varint::take(body)? {
            let mut number = varint::take(body)?;
            if number == 0 {
                let start = *body;
                for _ in 0..self.entities {
                    let length = varint::take(body)?;
                    varint::take_bytes(body, length)?;
                }
                let key = &start[..start.len() - body.len()];
                state.keys.push(place(&mut self.keys, key));
                state.nulls.push(0);
                state.values.resize(state.values.len() + self.types.len(), 0);
                number = state.keys.len() as u64;
            }
            state.keys.get(usize::try_from(number - 1).ok()?)?;
            state.order.push(number as u32 - 1);
        }
        Some(())
    }

    fn take_row(&mut self, row: usize, nulls: u64, body: &mut &[u8]) -> Option<()> {
        let state = &mut self.since_key_tick;
        let first = state.order[row] as usize * self.types.len();
        for (column, storage) in self.types.iter().enumerate() {
            let before = &mut state.values[first + column];
            let cell = match storage {
                _ if nulls & 1 << column != 0 => 0,
                Type::Uint64 | Type::Int64 | Type::Double => {
                    *before = before.wrapping_add(varint::take_signed(body)?.cast_unsigned());
                    *before
                }
                Type::Text => {
                    let mut number = varint::take(body)?;
                    if number == 0 {
                        let length = varint::take(body)?;
                        let text = varint::take_bytes(body, length)?;
                        state.texts.push(place(&mut self.texts, text));
                        number = state.texts.len() as u64;
                    }
                    u64::from(*state.texts.get(usize::try_from(number - 1).ok()?)?)
                }
                Type::Buckets => {
                    let start = *body;
                    take_list(&mut state.list, body)?;
                    let cell = 2 * self.lists.len() as u64 + u64::from(*before == 0);
                    self.lists.extend_from_slice(&start[..start.len() - body.len()]);
                    *before = 1;
                    cell
                }
            };
            self.cells[column].push(cell);
        }
        Some(())
    }

    /// The cells of a column in these rows, as their bits; `None` where one is missing.
    pub(crate) fn cells(&self, column: usize, rows: &[u32]) -> impl Iterator<Item = Option<u64>> {
        rows.iter().map(move |&row| {
            let is_missing = self.nulls[row as usize] & 1 << column != 0;
            (!is_missing).then(|| self.cells[column][row as usize])
        })
    }

    /// The text of a cell.
    pub(crate) fn text(&self, cell: u64) -> &[u8] {
        &self.texts[cell as usize]
    }

    /// Replaces `list`, the one before of the same entity, by the list of a cell.
    pub(crate) fn next_list(&self, cell: u64, list: &mut Vec<u64>) {
        if cell & 1 != 0 {
            list.clear();
        }
        let is_taken = take_list(list, &mut &self.lists[(cell / 2) as usize..]);
        debug_assert!(is_taken.is_some());
    }
}

/// The place of `bytes` in the order of their first occurrence.
fn place(known: &mut IndexSet<Box<[u8]>>, bytes: &[u8]) -> u32 {
    let place = known.get_index_of(bytes);
    place.unwrap_or_else(|| known.insert_full(bytes.into()).0) as u32
}
