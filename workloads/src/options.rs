//! Declares and parses options: one table row defines the parser, the help line and the entry in
//! `result.json`. Option names are those of sysbench, with `-`; `_` is accepted too.

mod common;

use std::collections::BTreeMap;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

pub use common::COMMON;
pub use common::Common;

/// Longer than any run; a duration cannot be more.
pub const LONGEST_SECONDS: f64 = 1e9;

/// Declares a table of options, and the struct of their values: an entry is the field, whose name with
/// hyphens is that of the option, its type, and the option's [`Kind`], default and help.
macro_rules! options {
    ($(#[$about:meta])* $seen:vis $table:ident, $values:ident; $(
        $(#[$attribute:meta])*
        $field:ident: $type:ty = $kind:ident $(($($limit:expr),*))? $(.$more:ident($text:expr))*,
    )+) => {
        $(#[$about])*
        $seen const $table: &[$crate::options::OptionSpec] = &[$({
            const NAME: [u8; stringify!($field).len()] = $crate::options::hyphens(stringify!($field));
            let name = match str::from_utf8(&NAME) {
                Ok(name) => name,
                Err(_) => stringify!($field),
            };
            let kind = $crate::options::Kind::$kind $(($($limit),*))?;
            $crate::options::OptionSpec::new(name, kind) $(.$more($text))*
        }),+];

        #[doc = concat!("The values of [`", stringify!($table), "`].")]
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        $seen struct $values {
            $($(#[$attribute])* $seen $field: $type),+
        }
    };
}
pub(crate) use options;

/// The name of a field with `-` for `_`.
pub const fn hyphens<const LENGTH: usize>(field: &str) -> [u8; LENGTH] {
    let mut name = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        let byte = field.as_bytes()[at];
        name[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    name
}

/// The type of an option's value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number in this inclusive range.
    Int(i64, i64),
    /// Whole numbers in this inclusive range, separated by commas; a single number is an `Int`.
    Ints(i64, i64),
    /// A decimal number in this inclusive range.
    Number(f64, f64),
    /// `on` or `off`; the option without a value means `on`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Seconds, or a duration such as `90s` or `5m`.
    Duration,
    /// Any text; the word is the placeholder in the help.
    Text(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Without the leading `--`.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// Default value.
    pub default: Option<&'static str>,
    /// Help line.
    pub help: &'static str,
}

impl OptionSpec {
    /// Without a default and help.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            default: None,
            help: "",
        }
    }

    /// With a default value.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }

    /// With a help line.
    pub const fn help(mut self, line: &'static str) -> Self {
        self.help = line;
        self
    }

    /// Parses a value of this option: times are seconds, and a list of one number is a number.
    ///
    /// # Errors
    /// The accepted values.
    pub fn parse(&self, text: &str) -> Result<Json, String> {
        let number = |text: &str, min: i64, max: i64| {
            let number = text.parse().ok();
            number.filter(|number| (min..=max).contains(number))
        };
        match self.kind {
            Kind::Int(min, max) => number(text, min, max)
                .map(Json::from)
                .ok_or_else(|| format!("is not a whole number from {min} to {max}")),
            Kind::Ints(min, max) => {
                let numbers = text.split(',').map(|word| number(word.trim(), min, max));
                match numbers.collect::<Option<Vec<i64>>>().as_deref() {
                    Some([number]) => Ok(json!(number)),
                    Some(numbers) => Ok(json!(numbers)),
                    None => Err(format!(
                        "is not a whole number from {min} to {max} or a comma-separated list of such numbers"
                    )),
                }
            }
            Kind::Number(min, max) => match text.parse::<f64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(json!(number)),
                _ => Err(format!("is not a number from {min} to {max}")),
            },
            // a campaign's `on` is YAML's true, which Ansible writes as True
            Kind::Flag => match text.to_ascii_lowercase().as_str() {
                "on" | "true" | "1" | "yes" => Ok(json!(true)),
                "off" | "false" | "0" | "no" => Ok(json!(false)),
                _ => Err("is not on or off".to_owned()),
            },
            // as the option files of MySQL and sysbench 1.1, which has only REQUIRED
            Kind::Choice(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok(json!(word)),
                None => Err(format!("is not one of {}", words.join(", "))),
            },
            Kind::Duration => seconds(text).map(Json::from).ok_or_else(|| {
                "is not a number of seconds, at most 1e9, or a duration such as 90s or 5m".to_owned()
            }),
            Kind::Text(_) => Ok(json!(text)),
        }
    }
}

/// A value as it is given on a command line; `None` without a value.
pub fn as_argument(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::Bool(true) => Some("on".to_owned()),
        Json::Bool(false) => Some("off".to_owned()),
        Json::String(text) => Some(text.clone()),
        Json::Array(numbers) => Some(numbers.iter().map(Json::to_string).collect::<Vec<_>>().join(",")),
        // sysbench accepts only whole numbers for whole seconds and the like
        other => match other
            .as_f64()
            .filter(|number| other.is_f64() && number.fract() == 0.0)
        {
            Some(number) => Some(format!("{number:.0}")),
            None => Some(other.to_string()),
        },
    }
}

fn seconds(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok();
    plain
        .or_else(|| {
            humantime::parse_duration(text)
                .ok()
                .map(|span| span.as_secs_f64())
        })
        .filter(|seconds| (0.0..=LONGEST_SECONDS).contains(seconds))
}

/// All declared options with their values.
#[derive(Debug, Clone, Default)]
pub struct Values {
    values: BTreeMap<&'static str, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    spec: OptionSpec,
    /// Null without a value and a default.
    value: Json,
    given: bool,
}

impl Values {
    /// Adds an option with the value from the command line, or its default.
    ///
    /// # Errors
    /// The option and its accepted values.
    pub fn add(&mut self, spec: &OptionSpec, given: Option<&str>) -> Result<()> {
        let text = given.or(spec.default);
        let value = match text.map(|text| spec.parse(text)).transpose() {
            Ok(value) => value.unwrap_or_default(),
            Err(expected) => bail!("--{}={} {expected}", spec.name, text.unwrap_or_default()),
        };
        let entry = Entry {
            spec: *spec,
            value,
            given: given.is_some(),
        };
        self.values.insert(spec.name, entry);
        Ok(())
    }

    /// A copy with these options set, as if they were given on the command line.
    ///
    /// # Errors
    /// As [`Values::add`], and for an option that is not declared.
    pub fn with(&self, options: &[(&'static str, String)]) -> Result<Self> {
        let mut values = self.clone();
        for (name, text) in options {
            let spec = self.entry(name)?.spec;
            values.add(&spec, Some(text))?;
        }
        Ok(values)
    }

    /// The defaults of these tables and the given values.
    #[cfg(test)]
    pub fn defaults(tables: &[&[OptionSpec]], given: &[(&str, &str)]) -> Self {
        let mut values = Self::default();
        for spec in tables.iter().copied().flatten() {
            let text = given
                .iter()
                .find(|(name, _)| *name == spec.name)
                .map(|(_, text)| *text);
            values.add(spec, text).unwrap();
        }
        values
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.values
            .get(name)
            .with_context(|| format!("internal error: the workload does not declare option --{name}"))
    }

    /// The values as a struct with a field, in kebab case, for each option that its module uses.
    ///
    /// # Errors
    /// A field that is no option of this workload, or has another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(Json::Object(self.to_json())).context("internal error: options")
    }

    /// True if the option was given on the command line.
    pub fn given(&self, name: &str) -> Result<bool> {
        Ok(self.entry(name)?.given)
    }

    /// True if the value differs from the default.
    pub fn changed(&self, name: &str) -> bool {
        let default = |spec: &OptionSpec| spec.default.and_then(|text| spec.parse(text).ok());
        let entry = self.values.get(name);
        entry.is_some_and(|entry| entry.value != default(&entry.spec).unwrap_or_default())
    }

    /// All values for `result.json`. No option contains a secret: passwords are in files.
    pub fn to_json(&self) -> Map<String, Json> {
        let values = self.values.iter();
        values
            .map(|(name, entry)| ((*name).to_owned(), entry.value.clone()))
            .collect()
    }

    /// All values for the recording, with the seed that was used.
    pub fn to_json_with_seed(&self, seed: u64) -> Json {
        let mut options = self.to_json();
        options.insert("rand-seed".to_owned(), json!(seed));
        Json::Object(options)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    const TIME: OptionSpec = OptionSpec::new("time", Kind::Duration).default("10");
    const THREADS: OptionSpec = OptionSpec::new("threads", Kind::Int(1, 8)).default("1");

    #[test]
    fn durations_are_seconds_or_have_units() {
        assert_eq!(TIME.parse("0.5"), Ok(json!(0.5)));
        assert_eq!(TIME.parse("5m"), Ok(json!(300.0)));
        for text in ["-1", "NaN", "1e20", "inf", "1000years"] {
            assert!(TIME.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_flag_is_on_or_off_in_any_case() {
        let flag = OptionSpec::new("auto-inc", Kind::Flag);
        assert_eq!(
            (flag.parse("True"), flag.parse("OFF")),
            (Ok(json!(true)), Ok(json!(false)))
        );
        assert!(flag.parse("2").is_err());
    }

    #[test]
    fn a_list_of_one_is_a_number_and_an_override_counts_as_given() {
        let list = OptionSpec::new("threads", Kind::Ints(1, 8)).default("1");
        let values = Values::defaults(&[&[list]], &[("threads", "1,4,8")]);
        assert_eq!(values.to_json()["threads"], json!([1, 4, 8]));
        let one = values.with(&[("threads", "4".to_owned())]).unwrap();
        assert_eq!(one.to_json()["threads"], json!(4));
        assert!(one.given("threads").unwrap());
        for wrong in ["", "1,", "1,9", "two"] {
            assert!(list.parse(wrong).is_err(), "{wrong}");
        }
        assert!(values.with(&[("tables", "4".to_owned())]).is_err());
    }

    #[test]
    fn a_default_is_not_given() {
        let values = Values::defaults(&[&[THREADS]], &[]);
        assert!(!values.given("threads").unwrap());
        assert!(values.given("tables").is_err());
    }

    #[test]
    fn a_field_without_its_option_is_an_error() {
        #[derive(Debug, Deserialize)]
        struct Options {
            threads: u8,
        }
        let values = Values::defaults(&[&[THREADS]], &[("threads", "3")]);
        assert_eq!(values.read::<Options>().unwrap().threads, 3);
        assert!(Values::default().read::<Options>().is_err());
    }
}
