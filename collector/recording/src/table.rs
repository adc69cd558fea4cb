//! Writes Parquet tables with the metadata key `loadprint` under a temporary name, syncs and
//! renames them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::basic::Encoding;
use parquet::basic::ZstdLevel;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::DEFAULT_MAX_ROW_GROUP_ROW_COUNT;
use parquet::file::properties::EnabledStatistics;
use parquet::file::properties::WriterProperties;
use parquet::file::properties::WriterVersion;
use parquet::schema::types::ColumnPath;
use serde_json::Value;

use crate::At;
use crate::Error;
use crate::Result;
use crate::files::Replacement;

/// The metadata key of every table.
pub const METADATA_KEY: &str = "loadprint";

/// The layout of a table in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Integers as differences, in row groups with statistics of ticks and entities: a query for
    /// two ticks, or for a few of many metrics, decodes little else.
    Long {
        /// Rows of a row group.
        group: usize,
    },
    /// Plain integers in one row group without statistics. In short series, a block of differences
    /// would span several series and the jumps between them, and the statistics would be larger
    /// than their benefit.
    Short,
}

impl Layout {
    /// Rows per group in a table of numbers: a few entities of an hour at 1 Hz.
    pub const NUMBERS: usize = 64 * 1024;
    /// Rows per group in a table of lists, in which a comparison reads two rows; more if the table
    /// would have too many groups.
    pub const LISTS: usize = 256;
    /// Limit on row groups: each adds about 1 kB to the footer, which every query reads and the
    /// writer holds in memory.
    const MAX_GROUPS: usize = 4096;

    /// The layout with the smaller file for `rows` rows, sorted by entity, of this number of
    /// entities.
    #[must_use]
    pub fn for_series(rows: usize, entities: usize, has_lists: bool) -> Self {
        match rows / entities.max(1) {
            0..256 => Self::Short,
            _ if has_lists => Self::Long {
                group: Self::LISTS.max(rows.div_ceil(Self::MAX_GROUPS)),
            },
            _ => Self::Long { group: Self::NUMBERS },
        }
    }
}

/// Writes `batches` (at least one, all of the same schema) as a table with `meta` under the key
/// `loadprint`.
///
/// # Errors
/// When there is no batch, the schemas differ, or the file cannot be written; the previous file
/// then stays.
pub fn write_table(path: &Path, meta: &Value, batches: &[RecordBatch]) -> Result<()> {
    let first = batches
        .first()
        .ok_or_else(|| Error::format(path, "no rows to write"))?;
    let rows = batches.iter().cloned().map(Ok);
    let layout = Layout::Long {
        group: Layout::NUMBERS,
    };
    write_stream(path, meta, layout, &first.schema(), rows).map(drop)
}

/// Writes batches one by one, so that the table need not fit into memory; returns the number of
/// rows.
///
/// # Errors
/// As [`write_table`], and those of the iterator.
pub fn write_stream(
    path: &Path,
    meta: &Value,
    layout: Layout,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch>>,
) -> Result<u64> {
    let mut table = TableWriter::create(path, meta, layout, schema)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        table.write(&batch)?;
    }
    table.finish()?;
    Ok(rows)
}

/// A table that is written while its rows arise. It has a temporary name until
/// [`TableWriter::finish`]; without that it is removed.
#[derive(Debug)]
pub struct TableWriter {
    writer: ArrowWriter<File>,
    new: Replacement,
}

impl TableWriter {
    /// Creates the table, with `meta` under the key `loadprint`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, meta: &Value, layout: Layout, schema: &SchemaRef) -> Result<Self> {
        let new = Replacement::create(path, 0o666)?;
        // The Arrow copy of the schema would double the footer; Parquet's types are sufficient.
        let options = ArrowWriterOptions::new()
            .with_properties(properties(schema, meta, layout))
            .with_skip_arrow_metadata(true);
        let file = new.file.try_clone().at(path)?;
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options)
            .map_err(|error| parquet_error(path, error))?;
        Ok(Self { writer, new })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When the schema differs, or the file cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer
            .write(batch)
            .map_err(|error| parquet_error(&self.new.path, error))
    }

    /// Writes what is buffered, and gives the table its name.
    ///
    /// # Errors
    /// When the file cannot be written or renamed; the previous file then stays.
    pub fn finish(self) -> Result<()> {
        self.writer
            .close()
            .map_err(|error| parquet_error(&self.new.path, error))?;
        self.new.sync_and_rename()
    }
}

/// The JSON document under the key `loadprint`.
///
/// # Errors
/// When the file is not a table or does not have this key.
pub fn read_meta(path: &Path) -> Result<Value> {
    let file = File::open(path).at(path)?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).at(path)?;
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let text = pairs
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == METADATA_KEY))
        .and_then(|pair| pair.value.as_deref())
        .ok_or_else(|| Error::format(path, "no metadata key `loadprint`: not a table of a recording"))?;
    serde_json::from_str(text).at(path)
}

fn properties(schema: &Schema, meta: &Value, layout: Layout) -> WriterProperties {
    let (encoding, level, group) = match layout {
        Layout::Long { group } => (Encoding::DELTA_BINARY_PACKED, ZstdLevel::default(), group),
        Layout::Short => (
            Encoding::PLAIN,
            ZstdLevel::try_new(9).unwrap_or_default(),
            DEFAULT_MAX_ROW_GROUP_ROW_COUNT,
        ),
    };
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(group))
        // Statistics of values and page indexes would be larger than the data.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by("loadprint".to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            METADATA_KEY.to_owned(),
            meta.to_string(),
        )]));
    for field in schema.fields() {
        let (column, kind) = match field.data_type() {
            DataType::List(item) => {
                let path = [field.name().as_str(), "list", item.name()].map(str::to_owned);
                (ColumnPath::new(path.to_vec()), item.data_type())
            }
            kind => (ColumnPath::from(field.name().as_str()), kind),
        };
        if kind.is_integer() {
            builder = builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column.clone(), encoding);
        }
        // Entity and tick, which are never null.
        if !field.is_nullable() && layout != Layout::Short {
            builder = builder.set_column_statistics_enabled(column, EnabledStatistics::Chunk);
        }
    }
    builder.build()
}

fn parquet_error(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => Error::format(path, cause),
        other => Error::format(path, other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow_array::ArrayRef;
    use arrow_array::UInt64Array;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("latency.parquet");
        let counts: ArrayRef = Arc::new(UInt64Array::from_iter_values([1, 2]));
        let batch = RecordBatch::try_from_iter([("count", counts)]).unwrap();
        let written = |batches: usize| {
            let mut table = TableWriter::create(&path, &json!({}), Layout::Short, &batch.schema()).unwrap();
            (0..batches).for_each(|_| table.write(&batch).unwrap());
            assert!(!path.exists());
            table
        };
        drop(written(1));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        written(2).finish().unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 4);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_long_recording_of_lists_has_few_row_groups() {
        let groups = |rows: usize, entities| match Layout::for_series(rows, entities, true) {
            Layout::Long { group } => rows.div_ceil(group),
            Layout::Short => 1,
        };
        // Twenty histograms of two minutes, of an hour, and of an hour at 100 Hz.
        let counts = [120, 3600, 360_000].map(|ticks| groups(20 * ticks, 20));
        assert_eq!(counts, [1, 282, 4096]);
    }
}
