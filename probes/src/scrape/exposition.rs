//! Parses the two text formats of metrics: Prometheus 0.0.4 (and 1.0.0, which has names in quotes)
//! and OpenMetrics 1.0.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//! It does not use a library, because the available ones build families of typed metrics and drop
//! what does not fit: the order, a second sample of a series, exemplars, inconsistent buckets. As
//! in Prometheus, a single malformed line makes the whole exposition invalid; unusual but
//! well-formed input (separated families, a late type) is accepted.

use std::str;

use super::line::Line;
use super::line::LineError;
use super::series::Series;
use crate::host::ParseError;

/// The format of a response, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text: timestamps in milliseconds, free spacing, other comments.
    Text,
    /// OpenMetrics: timestamps in seconds, exemplars, `# EOF`.
    OpenMetrics,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// One value.
    Sample {
        /// The series in its canonical form, see [`Series`].
        series: &'a str,
        /// The value, possibly NaN or infinite.
        value: f64,
        /// The timestamp, if the line has one (ns since 1970).
        timestamp_ns: Option<i64>,
        /// The exemplar as printed, without its `# `.
        exemplar: Option<&'a str>,
    },
    /// A HELP, TYPE or UNIT line.
    Description {
        /// `HELP`, `TYPE` or `UNIT`.
        keyword: &'static str,
        /// The name of the metric, in quotes if necessary.
        name: &'a str,
        /// The rest of the line as printed.
        text: &'a str,
    },
}

const TYPES: [&str; 9] = [
    "counter",
    "gauge",
    "histogram",
    "summary",
    "untyped",
    "unknown",
    "gaugehistogram",
    "stateset",
    "info",
];

/// Calls `take` with every sample and description in order; returns the number of samples.
///
/// # Errors
/// At the first malformed line; the items before it are then invalid too.
pub fn parse(body: &[u8], format: Format, take: &mut dyn FnMut(Item<'_>)) -> Result<u64, ParseError> {
    let text = str::from_utf8(body).map_err(|error| {
        let before = &body[..error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() as u32 + 1;
        let message = format!("byte {} is not UTF-8", error.valid_up_to());
        ParseError {
            line,
            item: "text",
            message,
        }
    })?;
    let mut reader = Reader {
        format,
        series: Series::default(),
        exemplar: Series::default(),
        samples: 0,
        ended: false,
    };
    let mut number = 0;
    let mut rest = text;
    while !rest.is_empty() {
        number += 1;
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = behind;
        reader.line(line, take).map_err(|(item, message)| ParseError {
            line: number,
            item,
            message,
        })?;
    }
    if format == Format::OpenMetrics && !reader.ended {
        return Err(ParseError {
            line: number,
            item: "# EOF",
            message: "missing at the end: the response is truncated".to_owned(),
        });
    }
    Ok(reader.samples)
}

struct Reader {
    format: Format,
    series: Series,
    exemplar: Series,
    samples: u64,
    ended: bool,
}

impl Reader {
    fn line(&mut self, text: &str, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        let mut line = Line::new(text);
        if self.ended {
            return Err(("# EOF", format!("`{}` follows it", line.shown())));
        }
        match self.format {
            Format::Text => {
                line.skip_blanks();
                if line.is_empty() {
                    return Ok(());
                }
                if line.take("#") {
                    line.skip_blanks();
                    return self.comment(&mut line, take);
                }
            }
            Format::OpenMetrics => {
                if text == "# EOF" {
                    self.ended = true;
                    return Ok(());
                }
                if line.take("#") {
                    if !line.take(" ") {
                        return Err(("comment", "no space after #".to_owned()));
                    }
                    return self.comment(&mut line, take);
                }
                if line.is_empty() {
                    return Err(("line", "empty".to_owned()));
                }
            }
        }
        self.sample(&mut line, take)
    }

    /// Reads what follows the `#` of a comment.
    fn comment(&mut self, line: &mut Line<'_>, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        let strict = self.format == Format::OpenMetrics;
        let word = line.word();
        let keyword = match word {
            "HELP" => "HELP",
            "TYPE" => "TYPE",
            "UNIT" if strict => "UNIT",
            _ if strict => {
                return Err(("comment", format!("`{word}` is not HELP, TYPE, UNIT or EOF")));
            }
            _ => return Ok(()),
        };
        self.blank(line, keyword)?;
        let name = self.series.read_name(line)?;
        if !line.is_empty() {
            // Blanks before the text are not part of it, blanks after it are.
            let separated = if strict {
                line.take(" ")
            } else {
                line.skip_blanks()
            };
            if !separated {
                return Err(("metric", format!("no space before `{}`", line.shown())));
            }
        }
        let text = line.rest();
        if keyword == "TYPE" && !TYPES.contains(&text.trim_end_matches([' ', '\t'])) {
            return Err(("TYPE", format!("`{}` is not a type of metric", line.shown())));
        }
        take(Item::Description { keyword, name, text });
        Ok(())
    }

    fn sample(&mut self, line: &mut Line<'_>, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        let strict = self.format == Format::OpenMetrics;
        let whole = line.rest();
        let series = self.series.read(line, !strict)?;
        let braces = whole[..whole.len() - line.rest().len()].ends_with('}');
        let separated = if strict {
            line.take(" ")
        } else {
            line.skip_blanks()
        };
        // The text format needs no space after a brace.
        if !separated && (strict || !braces) {
            return Err(("metric", format!("no space before `{}`", line.shown())));
        }
        let value = number(line.word())?;
        let mut timestamp_ns = None;
        let mut exemplar = None;
        let mut more = if strict {
            line.take(" ")
        } else {
            line.skip_blanks()
        };
        if more && !line.is_empty() && !line.rest().starts_with('#') {
            let word = line.word();
            timestamp_ns = Some(if strict {
                seconds(word)?
            } else {
                milliseconds(word)?
            });
            more = if strict {
                line.take(" ")
            } else {
                line.skip_blanks()
            };
        }
        if strict && more && line.take("# ") {
            exemplar = Some(line.rest());
            self.exemplar.read_exemplar(line)?;
            if !line.take(" ") {
                return Err(("exemplar", "the value is missing".to_owned()));
            }
            number(line.word())?;
            if line.take(" ") {
                seconds(line.word())?;
            }
            more = false;
        }
        if !line.is_empty() || (strict && more) {
            return Err(("sample", format!("`{}` follows its value", line.shown())));
        }
        take(Item::Sample {
            series,
            value,
            timestamp_ns,
            exemplar,
        });
        self.samples += 1;
        Ok(())
    }

    fn blank(&self, line: &mut Line<'_>, item: &'static str) -> Result<(), LineError> {
        let there = match self.format {
            Format::Text => line.skip_blanks(),
            Format::OpenMetrics => line.take(" "),
        };
        if there {
            Ok(())
        } else {
            Err((item, "the name of the metric is missing".to_owned()))
        }
    }
}

/// A number in the notation of Go's `ParseFloat` before 1.13, which is that of Rust.
fn number(word: &str) -> Result<f64, LineError> {
    let parsed = word.parse().ok();
    // A number that does not fit a double is refused, as in Go: an infinity must be explicit.
    let fits = |value: &f64| value.is_finite() || !word.bytes().any(|byte| byte.is_ascii_digit());
    parsed.filter(fits).ok_or_else(|| {
        let shown = Line::new(word).shown();
        let why = match word {
            "" => "missing".to_owned(),
            _ if parsed.is_some() => format!("`{shown}` is outside the range of a double"),
            _ if word.ends_with('\r') => {
                format!("`{shown}` ends with a carriage return; lines must end with a line feed only")
            }
            _ => format!("`{shown}` is not a number"),
        };
        ("value", why)
    })
}

const TOO_FAR: &str = "is outside the years 1677 to 2262";

fn milliseconds(word: &str) -> Result<i64, LineError> {
    let shown = || Line::new(word).shown();
    let milliseconds: i64 = word.parse().map_err(|_| {
        (
            "timestamp",
            format!("`{}` is not a whole number of milliseconds", shown()),
        )
    })?;
    milliseconds
        .checked_mul(1_000_000)
        .ok_or_else(|| ("timestamp", format!("`{}` {TOO_FAR}", shown())))
}

/// Converts seconds to nanoseconds: exactly for a decimal with up to nine places, otherwise
/// rounded.
fn seconds(word: &str) -> Result<i64, LineError> {
    let shown = || Line::new(word).shown();
    if let Some(exact) = decimal_seconds(word) {
        return Ok(exact);
    }
    let seconds: f64 = word
        .parse()
        .ok()
        .filter(|seconds: &f64| seconds.is_finite())
        .ok_or_else(|| ("timestamp", format!("`{}` is not a time in seconds", shown())))?;
    let nanoseconds = (seconds * 1e9).round();
    // 2^63, the first value that does not fit.
    if nanoseconds.abs() < 9.223_372_036_854_776e18 {
        Ok(nanoseconds as i64)
    } else {
        Err(("timestamp", format!("`{}` {TOO_FAR}", shown())))
    }
}

fn decimal_seconds(word: &str) -> Option<i64> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let fraction: i64 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let whole: i64 = whole.parse().ok()?;
    let nanoseconds = whole.checked_mul(1_000_000_000)?.checked_add(fraction * scale)?;
    Some(if negative { -nanoseconds } else { nanoseconds })
}

#[cfg(test)]
mod tests;
