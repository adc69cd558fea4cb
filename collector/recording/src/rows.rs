//! The rows of one probe at one tick, in buffers that are reused from tick to tick.
//!
//! A row is its entity (one string per entity column) and one cell per value column. Nothing here is allocated per value.

use crate::journal::varint;

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

/// One value of a row, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The source did not print it.
    Null,
    /// The bits of a `uint64`, `int64` or `double`, by the column's type.
    Bits(u64),
    /// A string.
    Text(&'a [u8]),
    /// The buckets of a histogram.
    List(&'a [u64]),
}

/// The rows of one probe at one tick.
#[derive(Debug, Default)]
pub struct Rows {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    lists: Vec<u64>,
}

impl Rows {
    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.cells.clear();
        self.bytes.clear();
        self.lists.clear();
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// True if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// True if every row has exactly `width` cells.
    #[must_use]
    pub fn has_width(&self, width: usize) -> bool {
        self.cells.len() == self.len() * width
    }

    /// Begins a row; `entity` has one string per entity column. Its cells follow.
    pub fn row(&mut self, entity: &[&[u8]]) {
        for part in entity {
            varint::put(&mut self.keys, part.len() as u64);
            self.keys.extend_from_slice(part);
        }
        self.key_ends.push(self.keys.len());
    }

    /// Begins a row whose only entity string is `pieces` one after the other.
    pub fn row_joined(&mut self, pieces: &[&[u8]]) {
        varint::put(
            &mut self.keys,
            pieces.iter().map(|piece| piece.len() as u64).sum(),
        );
        for piece in pieces {
            self.keys.extend_from_slice(piece);
        }
        self.key_ends.push(self.keys.len());
    }

    pub(crate) fn row_encoded(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
    }

    /// Appends a cell that the source did not print.
    pub fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// Appends `count` cells that the source did not print.
    pub fn nulls(&mut self, count: usize) {
        self.cells.extend((0..count).map(|_| Cell::Null));
    }

    /// Appends an unsigned integer.
    pub fn uint(&mut self, value: u64) {
        self.cells.push(Cell::Bits(value));
    }

    /// Appends an unsigned integer, or a missing cell.
    pub fn uint_or_null(&mut self, value: Option<u64>) {
        self.cells.push(value.map_or(Cell::Null, Cell::Bits));
    }

    /// Appends a signed integer.
    pub fn int(&mut self, value: i64) {
        self.cells.push(Cell::Bits(value.cast_unsigned()));
    }

    /// Appends a floating-point number.
    pub fn double(&mut self, value: f64) {
        self.cells.push(Cell::Bits(value.to_bits()));
    }

    /// Appends a string.
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

    /// Drops all rows from number `len` on, where every row has `width` cells: for a source that fails half way.
    pub fn truncate(&mut self, len: usize, width: usize) {
        self.key_ends.truncate(len);
        self.keys.truncate(self.key_ends.last().copied().unwrap_or(0));
        self.cells.truncate(len * width);
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

    pub(crate) fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.key_ends[row - 1] };
        &self.keys[start..self.key_ends[row]]
    }
}

/// Splits an encoded key (length and bytes per entity column) into its strings.
pub(crate) fn entity_parts(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = key;
    std::iter::from_fn(move || {
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
}
