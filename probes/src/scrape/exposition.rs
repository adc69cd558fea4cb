//! Parses the two text formats of metrics: Prometheus 0.0.4 (and 1.0.0, which has names in quotes)
//! and OpenMetrics 1.0.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//! It does not use a library, because the available ones build families of typed metrics and drop
//! what does not fit: the order, a second sample of a series, exemplars, inconsistent buckets. As
//! in Prometheus, a single malformed line makes the whole exposition invalid; unusual but
//! well-formed input (separated families, a late type) is accepted.

use std::borrow::Cow;
use std::str;

use super::line::Line;
use super::line::LineError;
use crate::source::ParseError;

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
        /// The series in its canonical form: `name{label="value",…}`, with labels sorted by name.
        /// Names outside the old alphabet are in quotes inside the braces.
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
    let failed = |line, (item, message): LineError| ParseError { line, item, message };
    let text = str::from_utf8(body).map_err(|error| {
        let before = &body[..error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() as u32 + 1;
        failed(line, ("text", format!("byte {} is not UTF-8", before.len())))
    })?;
    let mut reader = Reader {
        strict: format == Format::OpenMetrics,
        labels: vec![],
        canonical: String::new(),
        samples: 0,
        ended: false,
    };
    let mut number = 0;
    for line in text.split_inclusive('\n') {
        number += 1;
        let line = line.strip_suffix('\n').unwrap_or(line);
        reader.line(line, take).map_err(|error| failed(number, error))?;
    }
    if reader.strict && !reader.ended {
        let message = "missing at the end: the response is truncated".to_owned();
        return Err(failed(number, ("# EOF", message)));
    }
    Ok(reader.samples)
}

/// The state of one exposition, with buffers that are reused for the next line.
struct Reader<'a> {
    /// True for OpenMetrics.
    strict: bool,
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    canonical: String,
    samples: u64,
    ended: bool,
}

impl<'a> Reader<'a> {
    fn line(&mut self, text: &'a str, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        let mut line = Line::new(text, self.strict);
        if self.ended {
            return Err(("# EOF", format!("`{}` follows it", line.shown())));
        }
        if self.strict && text == "# EOF" {
            self.ended = true;
            return Ok(());
        }
        if !self.strict {
            line.skip_blanks();
        }
        match line.rest() {
            "" if self.strict => Err(("line", "empty".to_owned())),
            "" => Ok(()),
            _ if line.take("#") => self.comment(line, take),
            _ => self.sample(line, take),
        }
    }

    /// Reads what follows the `#` of a comment.
    fn comment(&mut self, mut line: Line<'a>, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        if !line.separator() && self.strict {
            return Err(("comment", "no space after #".to_owned()));
        }
        let keyword = match line.word() {
            "HELP" => "HELP",
            "TYPE" => "TYPE",
            "UNIT" if self.strict => "UNIT",
            word if self.strict => {
                return Err(("comment", format!("`{word}` is not HELP, TYPE, UNIT or EOF")));
            }
            _ => return Ok(()),
        };
        if !line.separator() {
            return Err((keyword, "the name of the metric is missing".to_owned()));
        }
        let name = line.name_or_quoted("metric", true)?.0;
        self.canonical.clear();
        append_name(&mut self.canonical, &name, true);
        // Blanks before the text are not part of it, blanks after it are.
        if !line.rest().is_empty() && !line.separator() {
            return Err(("metric", format!("no space before `{}`", line.shown())));
        }
        let text = line.rest();
        if keyword == "TYPE" && !TYPES.contains(&text.trim_end_matches([' ', '\t'])) {
            return Err(("TYPE", format!("`{}` is not a type of metric", line.shown())));
        }
        let name = &self.canonical;
        take(Item::Description { keyword, name, text });
        Ok(())
    }

    fn sample(&mut self, mut line: Line<'a>, take: &mut dyn FnMut(Item<'_>)) -> Result<(), LineError> {
        let has_braces = self.series(&mut line)?;
        // The text format needs no space after a brace.
        if !line.separator() && (self.strict || !has_braces) {
            return Err(("metric", format!("no space before `{}`", line.shown())));
        }
        let value = number(line.word())?;
        let mut timestamp_ns = None;
        let mut exemplar = None;
        let mut more = line.separator();
        if more && !line.rest().is_empty() && !line.rest().starts_with('#') {
            timestamp_ns = Some(timestamp(line.word(), self.strict)?);
            more = line.separator();
        }
        if self.strict && more && line.take("# ") {
            exemplar = Some(line.rest());
            self.exemplar(&mut line)?;
            more = false;
        }
        if !line.rest().is_empty() || (self.strict && more) {
            return Err(("sample", format!("`{}` follows its value", line.shown())));
        }
        take(Item::Sample {
            series: &self.canonical,
            value,
            timestamp_ns,
            exemplar,
        });
        self.samples += 1;
        Ok(())
    }

    /// Reads a series into `self.canonical`; true if it ends with a brace.
    fn series(&mut self, line: &mut Line<'a>) -> Result<bool, LineError> {
        let bare = line.name(true);
        let mut name = (!bare.is_empty()).then_some(Cow::Borrowed(bare));
        let mut ahead = *line;
        if !self.strict {
            ahead.skip_blanks();
        }
        let has_braces = ahead.take("{");
        self.labels.clear();
        if has_braces {
            *line = ahead;
            name = self.read_labels(line, name)?;
        }
        let name = name.ok_or_else(|| ("metric", format!("no name before `{}`", line.shown())))?;
        self.format(&name);
        Ok(has_braces)
    }

    /// Reads labels, a value and possibly a timestamp, without storing them.
    fn exemplar(&mut self, line: &mut Line<'a>) -> Result<(), LineError> {
        if !line.take("{") {
            return Err((
                "exemplar",
                format!("`{}` does not start with a brace", line.shown()),
            ));
        }
        self.labels.clear();
        if self.read_labels(line, None)?.is_some() {
            return Err(("exemplar", "a label has no value".to_owned()));
        }
        if !line.separator() {
            return Err(("exemplar", "the value is missing".to_owned()));
        }
        number(line.word())?;
        if line.separator() {
            timestamp(line.word(), true)?;
        }
        Ok(())
    }

    /// Reads the labels after the opening brace, and the closing brace; returns the name of the
    /// series, which may be in quotes among them.
    fn read_labels(
        &mut self,
        line: &mut Line<'a>,
        mut series: Option<Cow<'a, str>>,
    ) -> Result<Option<Cow<'a, str>>, LineError> {
        loop {
            line.skip_blanks();
            if line.take("}") {
                break;
            }
            let (name, is_bare) = line.name_or_quoted("label", false)?;
            line.skip_blanks();
            if line.take("=") {
                line.skip_blanks();
                self.labels.push((name, line.quoted("label")?));
            } else if is_bare {
                return Err(("label", format!("`{name}` has no value")));
            } else if series.replace(name).is_some() {
                return Err(("metric", "the series has two names".to_owned()));
            }
            line.skip_blanks();
            if !line.take(",") && !line.rest().starts_with('}') {
                return Err(("label", format!("no `,` or `}}` before `{}`", line.shown())));
            }
        }
        self.labels.sort();
        match self.labels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(("label", format!("`{}` is duplicate", pair[0].0))),
            None => Ok(series),
        }
    }

    fn format(&mut self, name: &str) {
        let out = &mut self.canonical;
        out.clear();
        let mut separator = "{";
        if is_bare(name, true) {
            out.push_str(name);
        } else {
            out.push('{');
            quote(out, name);
            separator = ",";
        }
        for (label, value) in &self.labels {
            out.push_str(separator);
            append_name(out, label, false);
            out.push('=');
            quote(out, value);
            separator = ",";
        }
        if separator == "," {
            out.push('}');
        }
    }
}

fn is_bare(name: &str, colons: bool) -> bool {
    !name.is_empty() && Line::new(name, true).name(colons) == name
}

fn append_name(out: &mut String, name: &str, colons: bool) {
    if is_bare(name, colons) {
        out.push_str(name);
    } else {
        quote(out, name);
    }
}

/// Appends `text` in quotes, with the escapes of the exposition formats.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for part in text.split_inclusive(['\\', '"', '\n']) {
        let plain = part.trim_end_matches(['\\', '"', '\n']);
        out.push_str(plain);
        match &part[plain.len()..] {
            "\\" => out.push_str("\\\\"),
            "\"" => out.push_str("\\\""),
            "\n" => out.push_str("\\n"),
            _ => {}
        }
    }
    out.push('"');
}

/// A number in the notation of Go's `ParseFloat` before 1.13, which is that of Rust.
fn number(word: &str) -> Result<f64, LineError> {
    let shown = || Line::new(word, true).shown();
    let why = match word.parse::<f64>() {
        // A number that does not fit a double is refused, as in Go: an infinity must be explicit.
        Ok(value) if !value.is_finite() && word.bytes().any(|byte| byte.is_ascii_digit()) => {
            format!("`{}` is outside the range of a double", shown())
        }
        Ok(value) => return Ok(value),
        Err(_) if word.is_empty() => "missing".to_owned(),
        Err(_) if word.ends_with('\r') => format!(
            "`{}` ends with a carriage return; lines must end with a line feed only",
            shown()
        ),
        Err(_) => format!("`{}` is not a number", shown()),
    };
    Err(("value", why))
}

/// Converts a timestamp to nanoseconds: whole milliseconds, or seconds in OpenMetrics.
fn timestamp(word: &str, is_seconds: bool) -> Result<i64, LineError> {
    let failed = |why| ("timestamp", format!("`{}` {why}", Line::new(word, true).shown()));
    let outside = || failed("is outside the years 1677 to 2262");
    if !is_seconds {
        let milliseconds = word.parse::<i64>();
        let milliseconds = milliseconds.map_err(|_| failed("is not a whole number of milliseconds"))?;
        return milliseconds.checked_mul(1_000_000).ok_or_else(outside);
    }
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if !digits.is_empty() && is_number(digits) && is_number(fraction) && fraction.len() <= 9 {
        // Exact; a double has microseconds only.
        return format!("{whole}{fraction:0<9}").parse().map_err(|_| outside());
    }
    let seconds = word.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let nanoseconds = seconds.ok_or_else(|| failed("is not a time in seconds"))? * 1e9;
    // 2^63 is the first value that does not fit.
    let fits = nanoseconds.abs() < 9.223_372_036_854_776e18;
    fits.then_some(nanoseconds.round() as i64).ok_or_else(outside)
}
