//! Collects one probe's rows of a whole recording as columns, sorts them by (entity, tick), and
//! returns them in batches.

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use arrow_array::builder::ListBuilder;
use arrow_array::builder::UInt64Builder;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use indexmap::IndexSet;

use crate::At;
use crate::Result;
use crate::journal::body;
use crate::rows::Rows;
use crate::rows::Value;
use crate::rows::entity_parts;
use crate::schema::Schema;
use crate::schema::Shape;
use crate::schema::Type;
use crate::table::Layout;

/// Rows per batch: enough for the encodings without much memory.
const BATCH: usize = 64 * 1024;
/// A row with a list is about a hundred times longer.
const LIST_BATCH: usize = 1024;

#[derive(Debug)]
pub(super) struct Columns {
    entity: Vec<String>,
    values: Vec<(String, Type)>,
    shape: Shape,
    keys: IndexSet<Box<[u8]>>,
    row_key: Vec<u32>,
    tick: Vec<u32>,
    nulls: Vec<u64>,
    /// Per column and row: the bits of a number, the number of a text, or the offset of a list.
    cells: Vec<Vec<u64>>,
    texts: IndexSet<Box<[u8]>>,
    /// All lists in the journal's encoding: an hour of decoded lists does not fit into memory.
    lists: Vec<u8>,
    /// Row numbers in order of (entity, tick).
    sorted: Vec<u32>,
}

impl Columns {
    pub(super) fn new(schema: &Schema) -> Self {
        let values: Vec<_> = schema
            .columns
            .iter()
            .map(|column| (column.name.to_string(), column.storage))
            .collect();
        Self {
            entity: schema.entity.iter().map(ToString::to_string).collect(),
            shape: schema.shape,
            keys: IndexSet::new(),
            row_key: vec![],
            tick: vec![],
            nulls: vec![],
            cells: vec![vec![]; values.len()],
            values,
            texts: IndexSet::new(),
            lists: vec![],
            sorted: vec![],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tick.len()
    }

    /// The file layout for series of this length.
    pub(super) fn layout(&self) -> Layout {
        Layout::for_series(self.len(), self.keys.len(), self.has_lists())
    }

    fn has_lists(&self) -> bool {
        self.values.iter().any(|(_, storage)| *storage == Type::Buckets)
    }

    /// True if the first entity column of any row is `name`.
    pub(super) fn has_entity(&self, name: &str) -> bool {
        self.keys
            .iter()
            .any(|key| entity_parts(key).next() == Some(name.as_bytes()))
    }

    pub(super) fn push(&mut self, tick: u32, rows: &Rows) {
        let width = self.values.len();
        for row in 0..rows.len() {
            let key = rows.key(row);
            self.row_key.push(number(&mut self.keys, key) as u32);
            self.tick.push(tick);
            let mut nulls = 0;
            for column in 0..width {
                let cell = match rows.value(row, column, width) {
                    Value::Null => {
                        nulls |= 1 << column;
                        0
                    }
                    Value::Bits(bits) => bits,
                    Value::Text(text) => number(&mut self.texts, text) as u64,
                    Value::List(list) => {
                        let offset = self.lists.len() as u64;
                        body::encode_list(&mut vec![], list, &mut self.lists);
                        offset
                    }
                };
                self.cells[column].push(cell);
            }
            self.nulls.push(nulls);
        }
    }

    /// Sorts the rows by (entity, tick); they arrive sorted by tick.
    pub(super) fn sort(&mut self) {
        let mut by_name: Vec<u32> = (0..self.keys.len() as u32).collect();
        by_name.sort_by_cached_key(|&key| {
            entity_parts(&self.keys[key as usize])
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        });
        let mut rank = vec![0; by_name.len()];
        for (index, &key) in by_name.iter().enumerate() {
            rank[key as usize] = index;
        }
        self.sorted = (0..self.len() as u32).collect();
        self.sorted
            .sort_by_key(|&row| rank[self.row_key[row as usize] as usize]);
    }

    /// The table in batches; `path` appears in error messages.
    pub(super) fn batches(&self, path: &Path) -> impl Iterator<Item = Result<RecordBatch>> {
        let batch = if self.has_lists() { LIST_BATCH } else { BATCH };
        let batches = self.sorted.chunks(batch);
        batches.map(|rows| self.batch(rows).at(path))
    }

    /// The rows of these numbers.
    pub(super) fn batch(&self, rows: &[u32]) -> std::result::Result<RecordBatch, ArrowError> {
        let entities = self.entity.iter().enumerate().map(|(part, name)| {
            let names: Vec<_> = self
                .keys
                .iter()
                .map(|key| entity_parts(key).nth(part).map(String::from_utf8_lossy))
                .collect();
            let cells = rows
                .iter()
                .map(|&row| names[self.row_key[row as usize] as usize].as_deref());
            let array: ArrayRef = Arc::new(cells.collect::<StringArray>());
            (name.as_str(), array, false)
        });
        let mut columns: Vec<_> = entities.collect();
        let ticks = rows.iter().map(|&row| self.tick[row as usize]);
        let ticks: ArrayRef = Arc::new(UInt32Array::from_iter_values(ticks));
        let place = match self.shape {
            Shape::Metrics => columns.len(),
            Shape::Table | Shape::Histogram => 0,
        };
        columns.insert(place, ("tick", ticks, false));
        let values = self.values.iter().enumerate();
        columns.extend(values.map(|(column, (name, _))| (name.as_str(), self.array(column, rows), true)));
        RecordBatch::try_from_iter_with_nullable(columns)
    }

    fn array(&self, column: usize, rows: &[u32]) -> ArrayRef {
        let cells = rows.iter().map(|&row| {
            let missing = self.nulls[row as usize] & 1 << column != 0;
            (!missing).then(|| self.cells[column][row as usize])
        });
        match self.values[column].1 {
            Type::Uint64 => Arc::new(cells.collect::<UInt64Array>()),
            Type::Int64 => Arc::new(
                cells
                    .map(|cell| cell.map(u64::cast_signed))
                    .collect::<Int64Array>(),
            ),
            Type::Double => Arc::new(
                cells
                    .map(|cell| cell.map(f64::from_bits))
                    .collect::<Float64Array>(),
            ),
            Type::Text => {
                // The kernel does not restrict process names to UTF-8, Parquet does.
                let text = |number| String::from_utf8_lossy(&self.texts[number as usize]);
                let texts = cells.map(|cell| cell.map(text));
                Arc::new(texts.collect::<StringArray>())
            }
            Type::Buckets => {
                let item = Field::new("element", DataType::UInt64, false);
                let mut builder = ListBuilder::new(UInt64Builder::new()).with_field(item);
                let mut list = vec![];
                for cell in cells {
                    if let Some(offset) = cell {
                        list.clear();
                        let decoded = body::take_list(&mut list, &mut &self.lists[offset as usize..]);
                        debug_assert!(decoded.is_some());
                        builder.values().append_slice(&list);
                    }
                    builder.append(cell.is_some());
                }
                Arc::new(builder.finish())
            }
        }
    }
}

/// The number of `bytes` in the order of first occurrence.
fn number(known: &mut IndexSet<Box<[u8]>>, bytes: &[u8]) -> usize {
    let number = known.get_index_of(bytes);
    number.unwrap_or_else(|| known.insert_full(bytes.into()).0)
}
