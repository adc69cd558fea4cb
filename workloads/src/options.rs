//! Options as tables: one row gives parsing, `help` and the entry in `result.json`.
//! Names are sysbench's, with `-`; `_` is taken too.

use std::collections::BTreeMap;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::Map;
use serde_json::Value as Json;

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number in this range, both ends included.
    Int(i64, i64),
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
            Kind::Int(least, most) => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(Parsed::Int(number)),
                _ => Err(format!("takes a whole number from {least} to {most}")),
            },
            Kind::Number(least, most) => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(Parsed::Number(number)),
                _ => Err(format!("takes a number from {least} to {most}")),
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
    values: BTreeMap<&'static str, (Option<Parsed>, bool)>,
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
            Err(wanted) => bail!("--{}={} {wanted}", spec.name, text.unwrap_or_default()),
        };
        self.values.insert(spec.name, (parsed, given.is_some()));
        Ok(())
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

    fn entry(&self, name: &str) -> Result<&(Option<Parsed>, bool)> {
        self.values
            .get(name)
            .with_context(|| format!("option --{name} is not declared for this workload"))
    }

    /// A whole number that has a default.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.entry(name)? {
            (Some(Parsed::Int(number)), _) => Ok(*number),
            _ => bail!("--{name} has no whole number"),
        }
    }

    /// As [`Values::int`], for counts.
    pub fn count(&self, name: &str) -> Result<usize> {
        usize::try_from(self.int(name)?).with_context(|| format!("--{name} must not be negative"))
    }

    /// A whole number, only if it was given.
    pub fn given_int(&self, name: &str) -> Result<Option<i64>> {
        match self.entry(name)? {
            (Some(Parsed::Int(number)), true) => Ok(Some(*number)),
            _ => Ok(None),
        }
    }

    /// A number or a duration in seconds.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.entry(name)? {
            (Some(Parsed::Number(number)), _) => Ok(*number),
            _ => bail!("--{name} has no number"),
        }
    }

    /// On or off.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.entry(name)? {
            (Some(Parsed::Flag(flag)), _) => Ok(*flag),
            _ => bail!("--{name} is neither on nor off"),
        }
    }

    /// A text, if there is one.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.entry(name)? {
            (Some(Parsed::Text(text)), _) => Ok(Some(text)),
            (None, _) => Ok(None),
            _ => bail!("--{name} has no text"),
        }
    }

    /// True if the option stood on the command line.
    pub fn given(&self, name: &str) -> Result<bool> {
        Ok(self.entry(name)?.1)
    }

    /// All values for `result.json`; no option holds a secret, only names of files that do.
    pub fn to_json(&self) -> Map<String, Json> {
        let json = |parsed: &Option<Parsed>| match parsed {
            None => Json::Null,
            Some(Parsed::Int(number)) => Json::from(*number),
            Some(Parsed::Number(number)) => Json::from(*number),
            Some(Parsed::Flag(flag)) => Json::from(*flag),
            Some(Parsed::Text(text)) => Json::from(text.as_str()),
        };
        self.values
            .iter()
            .map(|(name, (parsed, _))| ((*name).to_owned(), json(parsed)))
            .collect()
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
    fn a_default_is_not_given() {
        let values = Values::defaults(&[&[THREADS]], &[]);
        assert_eq!(
            (values.int("threads").unwrap(), values.given("threads").unwrap()),
            (1, false)
        );
        assert!(values.int("tables").is_err());
    }
}
