//! Collects one probe's rows of a whole recording as columns, sorts them by (entity, tick), and
//! returns them in batches.

use std::collections::HashMap;
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
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::SchemaRef;

use crate::Error;
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
    keys: Vec<Box<[u8]>>,
    key_numbers: HashMap<Box<[u8]>, u32>,
    row_key: Vec<u32>,
    tick: Vec<u32>,
    nulls: Vec<u64>,
    /// Per column and row: the bits of a number, the number of a text, or the offset of a list.
    cells: Vec<Vec<u64>>,
    texts: Vec<String>,
    text_numbers: HashMap<Box<[u8]>, u64>,
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
            keys: vec![],
            key_numbers: HashMap::new(),
            row_key: vec![],
            tick: vec![],
            nulls: vec![],
            cells: vec![vec![]; values.len()],
            values,
            texts: vec![],
            text_numbers: HashMap::new(),
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
            let number = self.key_numbers.get(key).copied().unwrap_or_else(|| {
                self.keys.push(key.into());
                let number = self.keys.len() as u32 - 1;
                self.key_numbers.insert(key.into(), number);
                number
            });
            self.row_key.push(number);
            self.tick.push(tick);
            let mut nulls = 0;
            for column in 0..width {
                let cell = match rows.value(row, column, width) {
                    Value::Null => {
                        nulls |= 1 << column;
                        0
                    }
                    Value::Bits(bits) => bits,
                    Value::Text(text) => self.text_number(text),
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

    fn text_number(&mut self, text: &[u8]) -> u64 {
        if let Some(&number) = self.text_numbers.get(text) {
            return number;
        }
        // The kernel does not restrict process names to UTF-8, Parquet does.
        self.texts.push(String::from_utf8_lossy(text).into_owned());
        let number = self.texts.len() as u64 - 1;
        self.text_numbers.insert(text.into(), number);
        number
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

    pub(super) fn schema(&self) -> SchemaRef {
        let mut fields: Vec<Field> = self
            .entity
            .iter()
            .map(|name| Field::new(name, DataType::Utf8, false))
            .collect();
        let tick = Field::new("tick", DataType::UInt32, false);
        match self.shape {
            Shape::Metrics => fields.push(tick),
            Shape::Table | Shape::Histogram => fields.insert(0, tick),
        }
        fields.extend(
            self.values
                .iter()
                .map(|(name, storage)| Field::new(name, data_type(*storage), true)),
        );
        Arc::new(arrow_schema::Schema::new(fields))
    }

    /// The table in batches; `path` appears in error messages.
    pub(super) fn batches(&self, path: &Path) -> impl Iterator<Item = Result<RecordBatch>> {
        let schema = self.schema();
        let batch = if self.has_lists() { LIST_BATCH } else { BATCH };
        self.sorted.chunks(batch).map(move |rows| {
            let columns = self.arrays(rows);
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| Error::format(path, error))
        })
    }

    fn arrays(&self, rows: &[u32]) -> Vec<ArrayRef> {
        let names: Vec<Vec<_>> = self
            .keys
            .iter()
            .map(|key| {
                entity_parts(key)
                    .map(|part| String::from_utf8_lossy(part))
                    .collect()
            })
            .collect();
        let mut arrays: Vec<ArrayRef> = (0..self.entity.len())
            .map(|part| {
                let strings = rows
                    .iter()
                    .map(|&row| names[self.row_key[row as usize] as usize][part].as_ref());
                Arc::new(StringArray::from_iter_values(strings)) as ArrayRef
            })
            .collect();
        let ticks = rows.iter().map(|&row| self.tick[row as usize]);
        let ticks = Arc::new(UInt32Array::from_iter_values(ticks));
        match self.shape {
            Shape::Metrics => arrays.push(ticks),
            Shape::Table | Shape::Histogram => arrays.insert(0, ticks),
        }
        arrays.extend((0..self.values.len()).map(|column| self.array(column, rows)));
        arrays
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
                let texts = cells.map(|cell| cell.map(|number| self.texts[number as usize].as_str()));
                Arc::new(texts.collect::<StringArray>())
            }
            Type::Buckets => {
                let mut builder = ListBuilder::new(UInt64Builder::new()).with_field(list_item());
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

fn list_item() -> Field {
    Field::new("element", DataType::UInt64, false)
}

fn data_type(storage: Type) -> DataType {
    match storage {
        Type::Uint64 => DataType::UInt64,
        Type::Int64 => DataType::Int64,
        Type::Double => DataType::Float64,
        Type::Text => DataType::Utf8,
        Type::Buckets => DataType::List(Arc::new(list_item())),
    }
}
