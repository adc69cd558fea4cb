//! Stores the rows of one probe at one tick in buffers that are reused at every tick, without an
//! allocation per value.
//!
//! A row has an entity (one string per entity column) and one cell per value column.

use std::fmt;
use std::iter;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::varint;

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Null,
    /// The bits of a `uint64`, `int64` or `double`.
    Bits(u64),
    /// A range of `Rows::bytes`.
    Text(u32, u32),
    /// A range of `Rows::lists`.
    List(u32, u32),
}

/// The value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Missing in the source.
    Null,
    /// The bits of a `uint64`, `int64` or `double`, by the column's type.
    Bits(u64),
    /// A string.
    Text(&'a [u8]),
    /// The buckets of a histogram.
    List(&'a [u64]),
}

/// What a source printed that is no value of its column, and lines that are not as documented. Such
/// a cell is missing, such a line has no row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    /// Number of cells.
    pub cells: u64,
    /// Number of lines, or of entities that cannot be read.
    pub lines: u64,
    /// The first of them, with its place.
    pub first: String,
}

impl Odd {
    /// Counts a cell; `place` describes it if it is the first.
    pub fn cell(&mut self, place: impl FnOnce() -> String) {
        self.note(place);
        self.cells += 1;
    }

    /// Counts a line; `place` describes it if it is the first.
    pub fn line(&mut self, place: impl FnOnce() -> String) {
        self.note(place);
        self.lines += 1;
    }

    /// Adds those of another part of the source.
    pub fn add(&mut self, other: &Self) {
        if !other.is_empty() {
            self.note(|| other.first.clone());
            self.cells += other.cells;
            self.lines += other.lines;
        }
    }

    /// True if all was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells == 0 && self.lines == 0
    }

    fn note(&mut self, place: impl FnOnce() -> String) {
        if self.is_empty() {
            self.first = place();
        }
    }
}

impl fmt::Display for Odd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [(self.cells, "cell"), (self.lines, "line")];
        let counts = kinds.into_iter().filter(|(count, _)| *count > 0);
        for (place, (count, kind)) in counts.enumerate() {
            let (and, plural) = (
                if place > 0 { ", " } else { "" },
                if count > 1 { "s" } else { "" },
            );
            write!(formatter, "{and}{count} {kind}{plural}")?;
        }
        write!(formatter, " ({})", self.first)
    }
}

/// The rows of one probe at one tick.
///
/// Entities are usually those of the previous tick, so `clear` keeps them: an unchanged entity is
/// compared and not copied, and [`Rows::generation`] lets the journal see that all entities are
/// unchanged.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    keys: Vec<u8>,
    /// Ends of the keys of this tick's rows, followed by those of the previous tick until one
    /// differs.
    key_ends: Vec<usize>,
    len: usize,
    generation: u64,
    differs: bool,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    lists: Vec<u64>,
    odd: Odd,
}

/// Generations are unique among all `Rows` of the process.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

impl Rows {
    /// Removes all rows and keeps the buffers.
    pub fn clear(&mut self) {
        if self.len < self.key_ends.len() {
            // Rows disappeared since the previous tick.
            self.drop_keys_from(self.len);
            self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        }
        self.len = 0;
        self.differs = false;
        self.cells.clear();
        self.bytes.clear();
        self.lists.clear();
        self.odd = Odd::default();
    }

    /// What was not read since [`Rows::clear`].
    #[must_use]
    pub fn odd(&self) -> &Odd {
        &self.odd
    }

    /// Counts what was not read.
    pub fn odd_mut(&mut self) -> &mut Odd {
        &mut self.odd
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if every row has exactly `width` cells.
    #[must_use]
    pub fn has_width(&self, width: usize) -> bool {
        self.cells.len() == self.len * width
    }

    /// Ticks of the same generation and number of rows have the same entities in the same order.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Begins a row; `entity` has one string per entity column. Its cells follow.
    pub fn row(&mut self, entity: &[&[u8]]) {
        self.begin(entity.chunks(1));
    }

    /// Begins a row whose only entity string is the concatenation of `pieces`.
    pub fn row_joined(&mut self, pieces: &[&[u8]]) {
        self.begin(iter::once(pieces));
    }

    /// Begins a row; each string of its entity is in pieces.
    #[inline]
    fn begin<'a>(&mut self, entity: impl Iterator<Item = &'a [&'a [u8]]> + Clone) {
        let length = |pieces: &[&[u8]]| pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let is_unchanged = self.previous_key().is_some_and(|mut before| {
            entity.clone().all(|pieces| {
                strip_length(&mut before, length(pieces))
                    && pieces.iter().all(|piece| strip(&mut before, piece))
            })
        });
        if is_unchanged {
            self.len += 1;
            return;
        }
        self.differ();
        for pieces in entity {
            varint::put(&mut self.keys, length(pieces) as u64);
            for piece in pieces {
                self.keys.extend_from_slice(piece);
            }
        }
        self.end_key();
    }

    fn row_encoded(&mut self, key: &[u8]) {
        self.differ();
        self.keys.extend_from_slice(key);
        self.end_key();
    }

    /// The previous tick's key at this position.
    #[inline]
    fn previous_key(&self) -> Option<&[u8]> {
        (!self.differs && self.len < self.key_ends.len()).then(|| self.key(self.len))
    }

    /// Marks that the rows differ from those of the previous tick from here on.
    fn differ(&mut self) {
        if !self.differs {
            self.drop_keys_from(self.len);
            self.differs = true;
            self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn drop_keys_from(&mut self, len: usize) {
        self.key_ends.truncate(len);
        self.keys.truncate(self.key_ends.last().copied().unwrap_or(0));
    }

    fn end_key(&mut self) {
        self.key_ends.push(self.keys.len());
        self.len += 1;
    }

    /// Appends a missing cell.
    #[inline]
    pub fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// Appends `count` missing cells.
    pub fn nulls(&mut self, count: usize) {
        self.cells.extend((0..count).map(|_| Cell::Null));
    }

    /// Appends an unsigned integer.
    #[inline]
    pub fn uint(&mut self, value: u64) {
        self.cells.push(Cell::Bits(value));
    }

    /// Appends an unsigned integer, or a missing cell.
    #[inline]
    pub fn uint_or_null(&mut self, value: Option<u64>) {
        self.cells.push(value.map_or(Cell::Null, Cell::Bits));
    }

    /// Appends a signed integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.cells.push(Cell::Bits(value.cast_unsigned()));
    }

    /// Appends a signed integer, or a missing cell.
    #[inline]
    pub fn int_or_null(&mut self, value: Option<i64>) {
        self.uint_or_null(value.map(i64::cast_unsigned));
    }

    /// Appends a floating-point number.
    #[inline]
    pub fn double(&mut self, value: f64) {
        self.cells.push(Cell::Bits(value.to_bits()));
    }

    /// Appends a string.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.cells.push(Cell::Text(start as u32, self.bytes.len() as u32));
    }

    /// Appends the buckets of a histogram.
    pub fn list(&mut self, buckets: &[u64]) {
        let start = self.lists.len();
        self.lists.extend_from_slice(buckets);
        self.cells.push(Cell::List(start as u32, self.lists.len() as u32));
    }

    /// Removes all rows from number `len` on, where every row has `width` cells: for a source that
    /// fails in the middle.
    pub fn truncate(&mut self, len: usize, width: usize) {
        if self.differs {
            self.drop_keys_from(len);
        }
        self.len = len;
        self.cells.truncate(len * width);
    }

    /// Copies the rows of `other`; the generation stays if the entities are unchanged.
    pub fn assign(&mut self, other: &Self) {
        // A second `clear` would discard the previous tick's entities.
        if !self.is_empty() {
            self.clear();
        }
        self.append(other);
    }

    /// Appends the rows of `other`, which may come from another source of the same table.
    pub fn append(&mut self, other: &Self) {
        for row in 0..other.len {
            let key = other.key(row);
            if self.previous_key() == Some(key) {
                self.len += 1;
            } else {
                self.row_encoded(key);
            }
        }
        let (bytes, lists) = (self.bytes.len() as u32, self.lists.len() as u32);
        self.cells.extend(other.cells.iter().map(|cell| match *cell {
            Cell::Text(start, end) => Cell::Text(start + bytes, end + bytes),
            Cell::List(start, end) => Cell::List(start + lists, end + lists),
            cell => cell,
        }));
        self.bytes.extend_from_slice(&other.bytes);
        self.lists.extend_from_slice(&other.lists);
        self.odd.add(&other.odd);
    }

    /// The entity strings of row `row`.
    pub fn entity(&self, row: usize) -> impl Iterator<Item = &[u8]> {
        entity_parts(self.key(row))
    }

    /// Cell `column` of row `row`, where every row has `width` cells.
    #[must_use]
    pub fn value(&self, row: usize, column: usize, width: usize) -> Value<'_> {
        match self.cells[row * width + column] {
            Cell::Null => Value::Null,
            Cell::Bits(bits) => Value::Bits(bits),
            Cell::Text(start, end) => Value::Text(&self.bytes[start as usize..end as usize]),
            Cell::List(start, end) => Value::List(&self.lists[start as usize..end as usize]),
        }
    }

    /// The missing columns of row `row`, one bit each.
    #[inline]
    pub(crate) fn missing(&self, row: usize, width: usize) -> u64 {
        let cells = self.cells[row * width..(row + 1) * width].iter().enumerate();
        cells.fold(0, |mask, (column, cell)| {
            mask | u64::from(*cell == Cell::Null) << column
        })
    }

    #[inline]
    pub(crate) fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.key_ends[row - 1] };
        &self.keys[start..self.key_ends[row]]
    }
}

/// Removes the encoded length from the front of `key`; true if it is `length`.
#[inline]
fn strip_length(key: &mut &[u8], length: usize) -> bool {
    match *key {
        [byte, rest @ ..] if *byte < 0x80 => {
            *key = rest;
            usize::from(*byte) == length
        }
        _ => varint::take(key) == Some(length as u64),
    }
}

/// Removes `part` from the front of `key`; false if it is not there.
#[inline]
fn strip(key: &mut &[u8], part: &[u8]) -> bool {
    let rest = key.strip_prefix(part);
    *key = rest.unwrap_or(key);
    rest.is_some()
}

/// Splits an encoded key (length and bytes per entity column) into its strings.
pub(crate) fn entity_parts(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = key;
    iter::from_fn(move || {
        let length = varint::take(&mut rest)? as usize;
        let (part, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_entity_and_cells_apart() {
        let mut rows = Rows::default();
        rows.row(&[b"24", b"all"]);
        rows.uint(7);
        rows.text(b"nvme0q1");
        rows.row_joined(&[b"Tcp", b".", b"MaxConn"]);
        rows.int(-1);
        rows.null();
        assert!(rows.has_width(2));
        assert_eq!(rows.entity(0).collect::<Vec<_>>(), [b"24".as_slice(), b"all"]);
        assert_eq!(rows.entity(1).collect::<Vec<_>>(), [b"Tcp.MaxConn".as_slice()]);
        assert_eq!(rows.value(0, 1, 2), Value::Text(b"nvme0q1"));
        assert_eq!(rows.value(1, 0, 2), Value::Bits(u64::MAX));
        assert_eq!(rows.value(1, 1, 2), Value::Null);
        rows.truncate(1, 2);
        assert!(rows.has_width(2) && rows.len() == 1);
        rows.clear();
        assert!(rows.is_empty());
    }

    #[test]
    fn a_generation_identifies_one_order_of_entities() {
        let mut rows = Rows::default();
        let fill = |rows: &mut Rows, names: &[&str]| {
            rows.clear();
            names.iter().for_each(|name| rows.row(&[name.as_bytes()]));
            (rows.generation(), rows.len())
        };
        let first = fill(&mut rows, &["a", "b", "c"]);
        assert_eq!(fill(&mut rows, &["a", "b", "c"]), first);
        // Fewer rows keep the generation and have another number; more rows after that have another
        // generation.
        assert_eq!(fill(&mut rows, &["a", "b"]), (first.0, 2));
        assert_ne!(fill(&mut rows, &["a", "b", "c"]).0, first.0);
        let third = fill(&mut rows, &["a", "x", "c"]);
        assert_eq!(rows.entity(2).next(), Some(b"c".as_slice()));
        assert_ne!(fill(&mut Rows::default(), &["a", "x", "c"]), third);
    }

    #[test]
    fn rows_of_two_sources_keep_their_texts_and_their_generation() {
        let fill = |name: &str, value: u64| {
            let mut rows = Rows::default();
            rows.row(&[name.as_bytes()]);
            rows.text(name.as_bytes());
            rows.list(&[value]);
            rows
        };
        let mut all = Rows::default();
        let mut join = |names: &[&str]| {
            all.clear();
            for (value, name) in names.iter().enumerate() {
                all.append(&fill(name, value as u64));
            }
            assert!(all.has_width(2) && all.len() == names.len());
            for (row, name) in names.iter().enumerate() {
                assert_eq!(all.entity(row).collect::<Vec<_>>(), [name.as_bytes()]);
                assert_eq!(all.value(row, 0, 2), Value::Text(name.as_bytes()));
                assert_eq!(all.value(row, 1, 2), Value::List(&[row as u64]));
            }
            all.generation()
        };
        let first = join(&["a", "b", "c"]);
        assert_eq!(join(&["a", "b", "c"]), first);
        let second = join(&["a", "x", "c"]);
        assert_ne!(second, first);
        assert_ne!(join(&["a"]), first);
        assert_ne!(join(&["a", "x", "c"]), second);
    }
}
