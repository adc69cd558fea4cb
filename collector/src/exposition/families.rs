//! Families of samples as both text formats know them, and how a value and its labels are written.

use std::collections::HashMap;

use loadprint_recording::schema::Kind as Declared;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;

use super::unit;

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only ever added to; the name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets, with `_bucket`, `_sum` and `_count` behind the name.
    Histogram,
    /// Facts as labels; the name ends in `_info` and the value is 1.
    Info,
    /// What node_exporter calls untyped.
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

/// A value as it is printed: integers whole, as the kernel counted them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Int(i64),
    /// Anything that was scaled, or printed with a fraction by its source.
    Double(f64),
}

impl Number {
    /// The value whose bits a recording would hold.
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

    /// The value, so many times.
    pub fn times(self, times: u64) -> Self {
        match self {
            _ if times == 1 => self,
            Self::Uint(value) => Self::Uint(value.saturating_mul(times)),
            Self::Int(value) => Self::Int(value.saturating_mul(times.cast_signed())),
            Self::Double(value) => Self::Double(value * times as f64),
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

/// One family: what it is, and its samples as lines.
#[derive(Debug)]
pub struct Family {
    /// The name with `_total` or `_info`, as the samples have it.
    pub name: String,
    /// What the samples are.
    pub kind: Kind,
    /// One line for a person.
    pub help: String,
    /// The lines; they are the same in both formats.
    pub samples: String,
}

impl Family {
    /// Appends a sample.
    pub fn sample<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a [u8])>, value: Number) {
        self.suffixed("", labels, value);
    }

    /// Appends a sample whose name has `suffix` behind the family's.
    pub fn suffixed<'a>(
        &mut self,
        suffix: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        value: Number,
    ) {
        let text = &mut self.samples;
        text.push_str(&self.name);
        text.push_str(suffix);
        let mut before = '{';
        for (name, value) in labels {
            text.push(before);
            before = ',';
            text.push_str(name);
            text.push_str("=\"");
            escape(&String::from_utf8_lossy(value), true, text);
            text.push('"');
        }
        if before == ',' {
            text.push('}');
        }
        text.push(' ');
        value.write(text);
        text.push('\n');
    }
}

/// Appends `raw` as both formats want it within a line; quotes are escaped in labels and, by OpenMetrics, in help.
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

/// Families in the order in which they were first seen. The samples of one stay together whoever adds them.
#[derive(Debug, Default)]
pub struct Families {
    list: Vec<Family>,
    places: HashMap<String, usize>,
}

impl Families {
    /// The family called `name`, made where it is not there yet.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) -> &mut Family {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None => {
                self.places.insert(name.to_owned(), self.list.len());
                self.list.push(Family {
                    name: name.to_owned(),
                    kind,
                    help: help.to_owned(),
                    samples: String::new(),
                });
                self.list.len() - 1
            }
        };
        &mut self.list[place]
    }

    /// Those that have samples.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.list.iter().filter(|family| !family.samples.is_empty())
    }
}
