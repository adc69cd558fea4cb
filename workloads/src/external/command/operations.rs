//! Reads the number of operations from a program's output.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use regex::Captures;
use regex::Regex;
use serde_json::Value as Json;
use serde_json_path::JsonPath;

use super::options::Options;
use super::options::Source;
use super::options::Which;

/// Patterns, and the values that matched so far.
#[derive(Debug, Default)]
pub struct Operations {
    regex: Option<Regex>,
    json: Option<JsonPath>,
    seconds_json: Option<JsonPath>,
    sum: bool,
    /// Value of the regular expression.
    matched: Option<f64>,
    matched_seconds: Option<f64>,
    /// The last line that was a JSON object.
    object: Option<Json>,
}

/// The regular expression of an option.
///
/// # Errors
/// An invalid expression.
pub fn regex(text: Option<&String>, name: &str) -> Result<Option<Regex>> {
    text.map(|text| Regex::new(text).with_context(|| format!("--{name}")))
        .transpose()
}

/// The number in group `operations`, else in the first group.
pub fn number(captures: &Captures<'_>) -> Option<f64> {
    let group = captures.name("operations").or_else(|| captures.get(1))?;
    group.as_str().replace(',', "").parse().ok()
}

impl Operations {
    /// Reads the options.
    ///
    /// # Errors
    /// An invalid pattern, or no source of operations.
    pub fn from_options(options: &Options) -> Result<Self> {
        let path = |text: Option<&String>, name: &str| -> Result<Option<JsonPath>> {
            text.map(|text| JsonPath::parse(text).with_context(|| format!("--{name}={text}")))
                .transpose()
        };
        let operations = Self {
            regex: regex(options.operations_regex.as_ref(), "operations-regex")?,
            json: path(options.operations_json.as_ref(), "operations-json")?,
            seconds_json: path(options.seconds_json.as_ref(), "seconds-json")?,
            sum: options.operations_of == Which::Sum,
            matched: None,
            matched_seconds: None,
            object: None,
        };
        if operations
            .regex
            .as_ref()
            .is_some_and(|regex| regex.captures_len() < 2)
        {
            bail!("--operations-regex has no group: put the number in ( )");
        }
        let sources = usize::from(operations.regex.is_some()) + usize::from(operations.json.is_some());
        let from_output = options.operations_from == Source::Output;
        if from_output && sources == 0 {
            bail!(
                "the source of operations is missing: give --operations-regex, --operations-json or --operations-from"
            );
        }
        if sources > usize::from(from_output) {
            bail!(
                "--operations-regex, --operations-json and --operations-from are mutually exclusive: give one"
            );
        }
        Ok(operations)
    }

    /// Reads a line of output.
    pub fn parse_line(&mut self, line: &str) {
        if self.json.is_some()
            && line.trim_start().starts_with('{')
            && let Ok(object) = serde_json::from_str(line)
        {
            self.object = Some(object);
        }
        let Some(captures) = self.regex.as_ref().and_then(|regex| regex.captures(line)) else {
            return;
        };
        let seconds = captures
            .name("seconds")
            .and_then(|group| group.as_str().parse::<f64>().ok());
        let add = |old: Option<f64>, new: Option<f64>| {
            if self.sum {
                Some(old.unwrap_or(0.0) + new?)
            } else {
                new
            }
        };
        self.matched = add(self.matched, number(&captures)).or(self.matched);
        self.matched_seconds = add(self.matched_seconds, seconds).or(self.matched_seconds);
    }

    /// Operations, and their seconds if they were printed.
    pub fn totals(&self) -> (Option<f64>, Option<f64>) {
        let at = |path: &Option<JsonPath>| path.as_ref()?.query(self.object.as_ref()?).first()?.as_f64();
        (
            self.matched.or_else(|| at(&self.json)),
            self.matched_seconds.or_else(|| at(&self.seconds_json)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::OPTIONS;
    use super::*;
    use crate::options::Values;

    fn operations(given: &[(&str, &str)]) -> Result<Operations> {
        Operations::from_options(&Values::defaults(&[OPTIONS], given).read()?)
    }

    fn totals(given: &[(&str, &str)], lines: &[&str]) -> (Option<f64>, Option<f64>) {
        let mut operations = operations(given).unwrap();
        lines.iter().for_each(|line| operations.parse_line(line));
        operations.totals()
    }

    #[test]
    fn lines_are_summed_or_the_last_one_counts() {
        let lines = ["done 10 in 1.5 s", "chatter", "done 1,020 in 2 s"];
        let regex = (
            "operations-regex",
            r"done (?<operations>[\d,]+) in (?<seconds>[\d.]+) s",
        );
        assert_eq!(totals(&[regex], &lines), (Some(1020.0), Some(2.0)));
        assert_eq!(
            totals(&[regex, ("operations-of", "sum")], &lines),
            (Some(1030.0), Some(3.5))
        );
        assert_eq!(totals(&[regex], &["nothing"]), (None, None));
    }

    #[test]
    fn a_json_path_is_applied_to_the_last_object() {
        let given = [("operations-json", "$.a[0].n"), ("seconds-json", "$.s")];
        assert_eq!(
            totals(
                &given,
                &["{\"a\":[{\"n\":1}]}", "{\"a\":[{\"n\":7}],\"s\":2.5}", "x"]
            ),
            (Some(7.0), Some(2.5))
        );
        assert_eq!(totals(&given, &["{broken"]), (None, None));
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        let refusal = |given: &[(&str, &str)]| format!("{:#}", operations(given).unwrap_err());
        assert!(refusal(&[]).contains("the source of operations is missing"));
        assert!(refusal(&[("operations-regex", "x")]).contains("has no group"));
        assert!(refusal(&[("operations-regex", "(x")]).contains("--operations-regex"));
        assert!(refusal(&[("operations-json", "$$")]).contains("--operations-json=$$"));
        assert!(
            refusal(&[("operations-json", "$.a"), ("operations-from", "commits")])
                .contains("mutually exclusive")
        );
    }
}
