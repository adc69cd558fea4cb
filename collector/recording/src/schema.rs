//! Describes a probe's table: shape, entity columns, and for each column type, unit, kind,
//! direction, help and source.
//!
//! Each probe declares its schema in `static` tables. The journal's header and every table's
//! metadata contain it.

use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::histogram;

/// Text that is declared in the program or read from a header.
pub type Text = Cow<'static, str>;

/// The three shapes of a table; see `docs/recording-format.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Fixed columns, one row per entity and tick.
    Table,
    /// An open key set: metric, tick, value and optionally text.
    Metrics,
    /// Cumulative buckets with their bounds in the metadata.
    Histogram,
}

/// The storage type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// An unsigned integer.
    Uint64,
    /// A signed integer.
    Int64,
    /// A floating-point number as the source printed it.
    Double,
    /// A string.
    Text,
    /// Bucket counts of a histogram.
    Buckets,
}

/// The units of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A count.
    #[serde(rename = "1")]
    One,
    /// Bytes.
    #[serde(rename = "B")]
    Byte,
    /// 1024 bytes, which the kernel prints as kB.
    #[serde(rename = "kB")]
    Kibibyte,
    /// 512 bytes, independent of the device's sector size.
    #[serde(rename = "sector")]
    Sector,
    /// A page of memory.
    #[serde(rename = "page")]
    Page,
    /// Seconds.
    #[serde(rename = "s")]
    Second,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millisecond,
    /// Microseconds.
    #[serde(rename = "us")]
    Microsecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// Picoseconds, the unit of performance_schema.
    #[serde(rename = "ps")]
    Picosecond,
    /// 1/USER_HZ seconds.
    #[serde(rename = "tick")]
    Tick,
    /// Millionths of a joule.
    #[serde(rename = "uJ")]
    Microjoule,
    /// Thousands of cycles a second.
    #[serde(rename = "kHz")]
    Kilohertz,
}

/// What kind of value a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Increases only, until it wraps or its source restarts.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Cumulative buckets.
    Histogram,
    /// A fact as text.
    Info,
}

/// Which direction is better, all else equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: the value describes the workload.
    Neither,
}

/// One column of a table, or one metric of an open key set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name; its meaning never changes.
    pub name: Text,
    /// The storage type.
    #[serde(rename = "type")]
    pub storage: Type,
    /// The unit.
    pub unit: Unit,
    /// Counter, gauge, histogram or info.
    pub kind: Kind,
    /// Which direction is better.
    pub better: Better,
    /// The help text, one line.
    pub help: Text,
    /// File and field of the source.
    pub source: Text,
    /// Bucket bounds of a histogram, `None` for infinity; empty for other kinds.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub bounds: Cow<'static, [Option<f64>]>,
    /// Width of a counter, or of the counters of which it is a sum, where it is below 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
}

impl Column {
    const fn new(
        (name, storage, unit, kind): (&'static str, Type, Unit, Kind),
        help: &'static str,
        source: &'static str,
        bounds: &'static [Option<f64>],
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            storage,
            unit,
            kind,
            better: Better::Neither,
            help: Cow::Borrowed(help),
            source: Cow::Borrowed(source),
            bounds: Cow::Borrowed(bounds),
            bits: None,
        }
    }

    /// A cumulative counter, stored as `uint64`.
    #[must_use]
    pub const fn counter(name: &'static str, unit: Unit, help: &'static str, source: &'static str) -> Self {
        Self::new((name, Type::Uint64, unit, Kind::Counter), help, source, &[])
    }

    /// A gauge, stored as `uint64`.
    #[must_use]
    pub const fn gauge(name: &'static str, unit: Unit, help: &'static str, source: &'static str) -> Self {
        Self::new((name, Type::Uint64, unit, Kind::Gauge), help, source, &[])
    }

    /// A fact as text.
    #[must_use]
    pub const fn info(name: &'static str, help: &'static str, source: &'static str) -> Self {
        Self::new((name, Type::Text, Unit::One, Kind::Info), help, source, &[])
    }

    /// Cumulative buckets with the bounds of [`histogram`].
    #[must_use]
    pub const fn buckets(name: &'static str, unit: Unit, help: &'static str, source: &'static str) -> Self {
        let column = (name, Type::Buckets, unit, Kind::Histogram);
        Self::new(column, help, source, &histogram::BOUNDS)
    }

    /// The same column, marked as better when lower.
    #[must_use]
    pub const fn lower(mut self) -> Self {
        self.better = Better::Lower;
        self
    }

    /// The same column, marked as better when higher.
    #[must_use]
    pub const fn higher(mut self) -> Self {
        self.better = Better::Higher;
        self
    }

    /// The same column, stored as another type.
    #[must_use]
    pub const fn stored(mut self, storage: Type) -> Self {
        self.storage = storage;
        self
    }

    /// The same counter with a width below 64 bits, or as a sum of such counters.
    #[must_use]
    pub const fn bits(mut self, bits: u8) -> Self {
        self.bits = Some(bits);
        self
    }

    /// The column's entry in a table's metadata. It omits `better` if neither is, and `source` if
    /// it is `shared_source`: in short recordings the metadata are larger than the data.
    #[must_use]
    pub fn metadata(&self, shared_source: Option<&str>) -> Value {
        let mut metadata = json!({"unit": self.unit, "kind": self.kind, "help": self.help});
        if self.better != Better::Neither {
            metadata["better"] = json!(self.better);
        }
        if shared_source != Some(&self.source) {
            metadata["source"] = json!(self.source);
        }
        if !self.bounds.is_empty() {
            metadata["bounds"] = json!(self.bounds);
        }
        if let Some(bits) = self.bits {
            metadata["bits"] = json!(bits);
        }
        metadata
    }
}

/// The schema of a probe's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The shape of the table.
    pub shape: Shape,
    /// Names of the entity columns; `["metric"]` for an open key set.
    pub entity: Cow<'static, [Text]>,
    /// The value columns, at most [`Schema::MAX_COLUMNS`].
    pub columns: Cow<'static, [Column]>,
    /// The declared metrics of an open key set.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub metrics: Cow<'static, [Column]>,
}

impl Schema {
    /// The journal marks missing values in 64 bits, one per column.
    pub const MAX_COLUMNS: usize = 64;

    const fn new(
        shape: Shape,
        entity: &'static [Text],
        columns: &'static [Column],
        metrics: &'static [Column],
    ) -> Self {
        Self {
            shape,
            entity: Cow::Borrowed(entity),
            columns: Cow::Borrowed(columns),
            metrics: Cow::Borrowed(metrics),
        }
    }

    /// A table with fixed columns.
    #[must_use]
    pub const fn table(entity: &'static [Text], columns: &'static [Column]) -> Self {
        Self::new(Shape::Table, entity, columns, &[])
    }

    /// An open key set of integers with the declared `metrics`.
    #[must_use]
    pub const fn metrics(metrics: &'static [Column]) -> Self {
        Self::new(Shape::Metrics, METRIC, VALUE, metrics)
    }

    /// An open key set of integers and texts with the declared `metrics`.
    #[must_use]
    pub const fn metrics_or_text(metrics: &'static [Column]) -> Self {
        Self::new(Shape::Metrics, METRIC, VALUE_OR_TEXT, metrics)
    }

    /// A table in which one column contains the buckets of a histogram.
    #[must_use]
    pub const fn histogram(entity: &'static [Text], columns: &'static [Column]) -> Self {
        Self::new(Shape::Histogram, entity, columns, &[])
    }

    /// Adds `columns` or `metrics` to a table's metadata; metrics only if `occurs` returns true. A
    /// source that all metrics share is stored once.
    pub fn describe(&self, meta: &mut Value, occurs: impl Fn(&str) -> bool) {
        let describe = |columns: &[Column], shared_source| -> Map<String, Value> {
            let occurring = columns.iter().filter(|column| occurs(&column.name));
            occurring
                .map(|column| (column.name.to_string(), column.metadata(shared_source)))
                .collect()
        };
        match (self.shape, self.metrics.first()) {
            (Shape::Metrics, Some(first)) => {
                meta["source"] = json!(first.source);
                meta["metrics"] = describe(&self.metrics, Some(&first.source)).into();
            }
            (Shape::Metrics, None) => meta["metrics"] = json!({}),
            (Shape::Table | Shape::Histogram, _) => {
                let columns = self
                    .columns
                    .iter()
                    .map(|column| (column.name.to_string(), column.metadata(None)));
                meta["columns"] = columns.collect::<Map<_, _>>().into();
            }
        }
    }
}

/// A name in a `static` table.
#[must_use]
pub const fn text(name: &'static str) -> Text {
    Cow::Borrowed(name)
}

static METRIC: &[Text] = &[text("metric")];
static VALUE: &[Column] =
    &[Column::gauge("value", Unit::One, "as the source printed it", "see metrics").stored(Type::Int64)];

static VALUE_OR_TEXT: &[Column] = &[
    Column::gauge("value", Unit::One, "as the source printed it", "see metrics").stored(Type::Int64),
    Column::info(
        "text",
        "what the source printed where it was not an integer",
        "see metrics",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    static COLUMNS: &[Column] = &[
        Column::counter("pgfault", Unit::One, "faults", "/proc/vmstat"),
        Column::gauge("dirty", Unit::Kibibyte, "to be written", "/proc/vmstat").lower(),
    ];

    #[test]
    fn a_schema_round_trips_through_the_header() {
        static ENTITY: &[Text] = &[text("node")];
        let schema = Schema::table(ENTITY, COLUMNS);
        let header = serde_json::to_string(&schema).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&header).unwrap(), schema);
        let mut meta = json!({});
        schema.describe(&mut meta, |_| false);
        let expected = json!({"columns": {
            "pgfault": {"unit": "1", "kind": "counter", "help": "faults", "source": "/proc/vmstat"},
            "dirty": {"unit": "kB", "kind": "gauge", "help": "to be written", "better": "lower",
                "source": "/proc/vmstat"},
        }});
        assert_eq!(meta, expected);
    }

    #[test]
    fn only_metrics_that_occur_are_described() {
        let mut meta = json!({});
        Schema::metrics(COLUMNS).describe(&mut meta, |name| name == "pgfault");
        let pgfault = json!({"unit": "1", "kind": "counter", "help": "faults"});
        assert_eq!(
            meta,
            json!({"source": "/proc/vmstat", "metrics": {"pgfault": pgfault}})
        );
    }
}
