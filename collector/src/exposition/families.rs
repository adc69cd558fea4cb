//! Collects metric families and formats their samples, with labels and values, as both text formats
//! require.

use std::collections::HashMap;

use loadprint_recording::schema::Kind as Declared;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;

use super::unit;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Increases only; the name ends in `_total`.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Cumulative buckets, with `_bucket`, `_sum` and `_count` appended to the name.
    Histogram,
    /// Facts as labels; the name ends in `_info` and the value is 1.
    Info,
    /// Untyped, as in node_exporter.
    Unknown,
}

impl From<Declared> for Kind {
    fn from(declared: Declared) -> Self {
        match declared {
            Declared::Counter => Self::Counter,
            Declared::Gauge => Self::Gauge,
            Declared::Histogram => Self::Histogram,
            Declared::Info => Self::Info,
        }
    }
}

/// A value of a sample; integers are printed without rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Int(i64),
    /// A scaled value, or one that its source printed with a fraction.
    Double(f64),
}

impl Number {
    /// The value of a cell of a recording.
    pub fn from_bits(bits: u64, storage: Type) -> Self {
        match storage {
            Type::Int64 => Self::Int(bits.cast_signed()),
            Type::Double => Self::Double(f64::from_bits(bits)),
            Type::Uint64 | Type::Text | Type::Buckets => Self::Uint(bits),
        }
    }

    /// The value in the base unit of `unit`.
    pub fn scaled(self, unit: Unit) -> Self {
        if unit::is_base(unit) {
            return self;
        }
        Self::Double(unit::to_base(
            match self {
                Self::Uint(value) => value as f64,
                Self::Int(value) => value as f64,
                Self::Double(value) => value,
            },
            unit,
        ))
    }

    /// The value multiplied by `factor`.
    pub fn times(self, factor: u64) -> Self {
        match self {
            _ if factor == 1 => self,
            Self::Uint(value) => Self::Uint(value.saturating_mul(factor)),
            Self::Int(value) => Self::Int(value.saturating_mul(factor.cast_signed())),
            Self::Double(value) => Self::Double(value * factor as f64),
        }
    }

    fn write(self, text: &mut String) {
        match self {
            Self::Uint(value) => text.push_str(&value.to_string()),
            Self::Int(value) => text.push_str(&value.to_string()),
            Self::Double(value) if value.is_nan() => text.push_str("NaN"),
            Self::Double(f64::INFINITY) => text.push_str("+Inf"),
            Self::Double(f64::NEG_INFINITY) => text.push_str("-Inf"),
            Self::Double(value) => text.push_str(&value.to_string()),
        }
    }
}

/// One metric family with its samples as text.
#[derive(Debug)]
pub struct Family {
    /// The name in the samples, including `_total` or `_info`.
    pub name: String,
    /// The type.
    pub kind: Kind,
    /// The help text.
    pub help: String,
    /// The lines, which are the same in both formats.
    pub samples: String,
}

impl Family {
    /// Appends a sample.
    pub fn sample<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a [u8])>, value: Number) {
        self.suffixed("", labels, value);
    }

    /// Appends a sample whose name is the family's name and `suffix`.
    pub fn suffixed<'a>(
        &mut self,
        suffix: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        value: Number,
    ) {
        let text = &mut self.samples;
        text.push_str(&self.name);
        text.push_str(suffix);
        let mut separator = '{';
        for (name, value) in labels {
            text.push(separator);
            separator = ',';
            text.push_str(name);
            text.push_str("=\"");
            escape(&String::from_utf8_lossy(value), true, text);
            text.push('"');
        }
        if separator == ',' {
            text.push('}');
        }
        text.push(' ');
        value.write(text);
        text.push('\n');
    }
}

/// Appends `raw` escaped for one line. Both formats escape quotes in labels, and OpenMetrics also
/// in help texts.
pub fn escape(raw: &str, quotes: bool, text: &mut String) {
    for letter in raw.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quotes => text.push_str("\\\""),
            _ => text.push(letter),
        }
    }
}

/// Families in the order of their creation. The samples of a family stay together.
#[derive(Debug, Default)]
pub struct Families {
    list: Vec<Family>,
    index_by_name: HashMap<String, usize>,
}

impl Families {
    /// The family `name`, created if it does not exist.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) -> &mut Family {
        let index = match self.index_by_name.get(name) {
            Some(&index) => index,
            None => {
                self.index_by_name.insert(name.to_owned(), self.list.len());
                self.list.push(Family {
                    name: name.to_owned(),
                    kind,
                    help: help.to_owned(),
                    samples: String::new(),
                });
                self.list.len() - 1
            }
        };
        &mut self.list[index]
    }

    /// The families that have samples.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.list.iter().filter(|family| !family.samples.is_empty())
    }
}
