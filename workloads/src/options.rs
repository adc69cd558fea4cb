//! Options as tables: one row gives parsing, `help` and the entry in `result.json`.
//! Names are sysbench's, with `-`; `_` is taken too.

mod common;

use std::collections::BTreeMap;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

pub use common::COMMON;

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number in this range, both ends included.
    Int(i64, i64),
    /// Whole numbers in this range, separated by commas; one alone is an `Int`.
    Ints(i64, i64),
    /// A decimal number in this range, both ends included.
    Number(f64, f64),
    /// `on` or `off`; the bare option means `on`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Seconds, or a duration such as `90s` or `5m`.
    Duration,
    /// Any text; the word is shown in `help`.
    Text(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Without the leading `--`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its value when it is not given.
    pub default: Option<&'static str>,
    /// One line.
    pub help: &'static str,
}

impl OptionSpec {
    /// A row of a table.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            help,
        }
    }

    /// Parses the text of this option.
    ///
    /// # Errors
    /// Says what is taken instead.
    pub fn parse(&self, text: &str) -> Result<Parsed, String> {
        match self.kind {
            Kind::Int(min, max) => match text.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(Parsed::Int(number)),
                _ => Err(format!("takes a whole number from {min} to {max}")),
            },
            Kind::Ints(min, max) => {
                let number = |word: &str| word.trim().parse().ok();
                let numbers: Option<Vec<i64>> = text.split(',').map(number).collect();
                match numbers.filter(|all| all.iter().all(|one| (min..=max).contains(one))) {
                    Some(numbers) if numbers.len() == 1 => Ok(Parsed::Int(numbers[0])),
                    Some(numbers) => Ok(Parsed::Ints(numbers)),
                    None => Err(format!(
                        "takes a whole number from {min} to {max}, or several separated by commas"
                    )),
                }
            }
            Kind::Number(min, max) => match text.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(Parsed::Number(number)),
                _ => Err(format!("takes a number from {min} to {max}")),
            },
            Kind::Flag => match text {
                "on" | "true" | "1" | "yes" => Ok(Parsed::Flag(true)),
                "off" | "false" | "0" | "no" => Ok(Parsed::Flag(false)),
                _ => Err("takes on or off".to_owned()),
            },
            Kind::Choice(words) => {
                if words.contains(&text) {
                    Ok(Parsed::Text(text.to_owned()))
                } else {
                    Err(format!("takes one of {}", words.join(", ")))
                }
            }
            Kind::Duration => seconds(text)
                .map(Parsed::Number)
                .ok_or_else(|| "takes seconds, or a duration such as 90s or 5m".to_owned()),
            Kind::Text(_) => Ok(Parsed::Text(text.to_owned())),
        }
    }
}

fn seconds(text: &str) -> Option<f64> {
    let plain = text
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0);
    plain.or_else(|| {
        humantime::parse_duration(text)
            .ok()
            .map(|span| span.as_secs_f64())
    })
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    /// Of `Int`.
    Int(i64),
    /// Of `Ints`, when there are several.
    Ints(Vec<i64>),
    /// Of `Number` and `Duration` (seconds).
    Number(f64),
    /// Of `Flag`.
    Flag(bool),
    /// Of `Choice` and `Text`.
    Text(String),
}

/// The options of one invocation: all that are declared, with their values.
#[derive(Debug, Clone, Default)]
pub struct Values {
    values: BTreeMap<&'static str, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    spec: OptionSpec,
    parsed: Option<Parsed>,
    given: bool,
}

impl Values {
    /// Takes the text given on the command line, or the default.
    ///
    /// # Errors
    /// Names the option and what it takes.
    pub fn add(&mut self, spec: &OptionSpec, given: Option<&str>) -> Result<()> {
        let text = given.or(spec.default);
        let parsed = match text.map(|text| spec.parse(text)).transpose() {
            Ok(parsed) => parsed,
            Err(expected) => bail!("--{}={} {expected}", spec.name, text.unwrap_or_default()),
        };
        let entry = Entry {
            spec: *spec,
            parsed,
            given: given.is_some(),
        };
        self.values.insert(spec.name, entry);
        Ok(())
    }

    /// The same with these options set, as if they stood on the command line.
    ///
    /// # Errors
    /// As [`Values::add`], and when there is no such option.
    pub fn with(&self, options: &[(&'static str, String)]) -> Result<Self> {
        let mut values = self.clone();
        for (name, text) in options {
            let spec = self.entry(name)?.spec;
            values.add(&spec, Some(text))?;
        }
        Ok(values)
    }

    /// All defaults of these tables; what a test starts from.
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
            .with_context(|| format!("option --{name} is not declared for this workload"))
    }

    /// A whole number that has a default.
    pub fn int(&self, name: &str) -> Result<i64> {
        match &self.entry(name)?.parsed {
            Some(Parsed::Int(number)) => Ok(*number),
            _ => bail!("--{name} has no whole number"),
        }
    }

    /// The numbers of a list, at min one.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match &self.entry(name)?.parsed {
            Some(Parsed::Int(number)) => Ok(vec![*number]),
            Some(Parsed::Ints(numbers)) => Ok(numbers.clone()),
            _ => bail!("--{name} has no whole number"),
        }
    }

    /// As [`Values::int`], for counts.
    pub fn count(&self, name: &str) -> Result<usize> {
        usize::try_from(self.int(name)?).with_context(|| format!("--{name} must not be negative"))
    }

    /// A number or a duration in seconds.
    pub fn number(&self, name: &str) -> Result<f64> {
        match &self.entry(name)?.parsed {
            Some(Parsed::Number(number)) => Ok(*number),
            _ => bail!("--{name} has no number"),
        }
    }

    /// On or off.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match &self.entry(name)?.parsed {
            Some(Parsed::Flag(flag)) => Ok(*flag),
            _ => bail!("--{name} is neither on nor off"),
        }
    }

    /// A text, if there is one.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match &self.entry(name)?.parsed {
            Some(Parsed::Text(text)) => Ok(Some(text)),
            None => Ok(None),
            _ => bail!("--{name} has no text"),
        }
    }

    /// True if the option stood on the command line.
    pub fn given(&self, name: &str) -> Result<bool> {
        Ok(self.entry(name)?.given)
    }

    /// True if the workload has this option.
    pub fn declares(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// True if the option has another value than its default.
    pub fn changed(&self, name: &str) -> bool {
        let default = |spec: &OptionSpec| spec.default.and_then(|text| spec.parse(text).ok());
        let entry = self.values.get(name);
        entry.is_some_and(|entry| entry.parsed != default(&entry.spec))
    }

    /// All values for `result.json`; no option holds a secret, only names of files that do.
    pub fn to_json(&self) -> Map<String, Json> {
        let json = |parsed: &Option<Parsed>| match parsed {
            None => Json::Null,
            Some(Parsed::Int(number)) => Json::from(*number),
            Some(Parsed::Ints(numbers)) => Json::from(numbers.clone()),
            Some(Parsed::Number(number)) => Json::from(*number),
            Some(Parsed::Flag(flag)) => Json::from(*flag),
            Some(Parsed::Text(text)) => Json::from(text.as_str()),
        };
        self.values
            .iter()
            .map(|(name, entry)| ((*name).to_owned(), json(&entry.parsed)))
            .collect()
    }

    /// The options as recorded, with the seed that was used.
    pub fn to_json_with_seed(&self, seed: u64) -> Json {
        let mut options = self.to_json();
        options.insert("rand-seed".to_owned(), json!(seed));
        Json::Object(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: OptionSpec = OptionSpec::new("time", Kind::Duration, Some("10"), "");
    const THREADS: OptionSpec = OptionSpec::new("threads", Kind::Int(1, 8), Some("1"), "");

    #[test]
    fn durations_are_seconds_or_words() {
        assert_eq!(TIME.parse("0.5"), Ok(Parsed::Number(0.5)));
        assert_eq!(TIME.parse("5m"), Ok(Parsed::Number(300.0)));
        assert!(TIME.parse("-1").is_err());
        assert!(TIME.parse("NaN").is_err());
    }

    #[test]
    fn a_wrong_value_names_the_option_and_what_it_takes() {
        let mut values = Values::default();
        let error = values.add(&THREADS, Some("9")).unwrap_err().to_string();
        assert_eq!(error, "--threads=9 takes a whole number from 1 to 8");
    }

    #[test]
    fn a_list_of_one_is_a_number_and_an_override_counts_as_given() {
        let list = OptionSpec::new("threads", Kind::Ints(1, 8), Some("1"), "");
        let values = Values::defaults(&[&[list]], &[("threads", "1,4,8")]);
        assert_eq!(values.ints("threads").unwrap(), [1, 4, 8]);
        assert!(values.int("threads").is_err());
        let one = values.with(&[("threads", "4".to_owned())]).unwrap();
        assert_eq!(
            (one.int("threads").unwrap(), one.given("threads").unwrap()),
            (4, true)
        );
        for wrong in ["", "1,", "1,9", "two"] {
            assert!(list.parse(wrong).is_err(), "{wrong}");
        }
        assert!(values.with(&[("tables", "4".to_owned())]).is_err());
    }

    #[test]
    fn a_default_is_not_given() {
        let values = Values::defaults(&[&[THREADS]], &[]);
        assert_eq!(
            (values.int("threads").unwrap(), values.given("threads").unwrap()),
            (1, false)
        );
        assert!(values.int("tables").is_err());
    }
}
