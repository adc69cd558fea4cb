//! Parses a series and formats it in a canonical form: `name{label="value",…}`, with labels sorted
//! by name.
//!
//! Exporters can print labels in any order and with any spacing; a series has one form in the
//! tables, from which name and labels can be parsed. Names outside the old alphabet are in quotes
//! inside the braces, as in the exposition format.

use std::ops::Range;

use super::line::Line;
use super::line::LineError;

/// A series, with buffers that are reused for the next one.
#[derive(Debug, Default)]
pub struct Series {
    /// Names and values without escapes, concatenated.
    text: String,
    name: Option<Range<usize>>,
    labels: Vec<(Range<usize>, Range<usize>)>,
    canonical: String,
}

impl Series {
    /// Reads a series from the beginning of the line. `spaced`: blanks are allowed before the
    /// braces.
    ///
    /// # Errors
    /// When it has no name or two names, a label is duplicate, or the braces do not contain labels.
    pub fn read(&mut self, line: &mut Line<'_>, spaced: bool) -> Result<&str, LineError> {
        self.clear();
        let name = line.name(true);
        if !name.is_empty() {
            self.name = Some(append(&mut self.text, name));
        }
        let mut ahead = *line;
        if spaced {
            ahead.skip_blanks();
        }
        if ahead.take("{") {
            *line = ahead;
            self.read_labels(line)?;
        }
        if self.name.is_none() {
            return Err(("metric", format!("no name before `{}`", line.shown())));
        }
        self.sort()?;
        self.format();
        Ok(&self.canonical)
    }

    /// Reads the labels of an exemplar, in braces without a metric.
    ///
    /// # Errors
    /// As [`Series::read`].
    pub fn read_exemplar(&mut self, line: &mut Line<'_>) -> Result<(), LineError> {
        self.clear();
        if !line.take("{") {
            return Err((
                "exemplar",
                format!("`{}` does not start with a brace", line.shown()),
            ));
        }
        self.read_labels(line)?;
        if self.name.is_some() {
            return Err(("exemplar", "a label has no value".to_owned()));
        }
        self.sort()
    }

    /// Reads the name of a metric in a HELP, TYPE or UNIT line, with or without quotes.
    ///
    /// # Errors
    /// When the name is missing.
    pub fn read_name(&mut self, line: &mut Line<'_>) -> Result<&str, LineError> {
        self.clear();
        let name = line.name(true);
        if name.is_empty() {
            line.quoted("metric", &mut self.text)?;
        } else {
            self.text.push_str(name);
        }
        append_name(&mut self.canonical, &self.text, true);
        Ok(&self.canonical)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.canonical.clear();
        self.labels.clear();
        self.name = None;
    }

    /// Reads the labels after the opening brace, and the closing brace.
    fn read_labels(&mut self, line: &mut Line<'_>) -> Result<(), LineError> {
        loop {
            line.skip_blanks();
            if line.take("}") {
                return Ok(());
            }
            let bare = line.name(false);
            let name = if bare.is_empty() {
                let begin = self.text.len();
                line.quoted("label", &mut self.text)?;
                begin..self.text.len()
            } else {
                append(&mut self.text, bare)
            };
            line.skip_blanks();
            if line.take("=") {
                line.skip_blanks();
                let begin = self.text.len();
                line.quoted("label", &mut self.text)?;
                self.labels.push((name, begin..self.text.len()));
            } else if !bare.is_empty() {
                return Err(("label", format!("`{bare}` has no value")));
            } else if self.name.replace(name).is_some() {
                return Err(("metric", "the series has two names".to_owned()));
            }
            line.skip_blanks();
            if !line.take(",") && !line.rest().starts_with('}') {
                return Err(("label", format!("no `,` or `}}` before `{}`", line.shown())));
            }
        }
    }

    fn sort(&mut self) -> Result<(), LineError> {
        let text = &self.text;
        self.labels
            .sort_by(|(one, _), (other, _)| text[one.clone()].cmp(&text[other.clone()]));
        let twice = self
            .labels
            .windows(2)
            .find(|pair| text[pair[0].0.clone()] == text[pair[1].0.clone()]);
        match twice {
            Some(pair) => Err(("label", format!("`{}` is duplicate", &text[pair[0].0.clone()]))),
            None => Ok(()),
        }
    }

    fn format(&mut self) {
        let Self {
            text,
            name,
            labels,
            canonical,
        } = self;
        let name = &text[name.clone().unwrap_or_default()];
        let bare = is_bare(name, true);
        if bare {
            canonical.push_str(name);
        }
        if bare && labels.is_empty() {
            return;
        }
        canonical.push('{');
        if !bare {
            quote(canonical, name);
        }
        for (index, (label, value)) in labels.iter().enumerate() {
            if index > 0 || !bare {
                canonical.push(',');
            }
            append_name(canonical, &text[label.clone()], false);
            canonical.push('=');
            quote(canonical, &text[value.clone()]);
        }
        canonical.push('}');
    }
}

fn append(text: &mut String, part: &str) -> Range<usize> {
    let begin = text.len();
    text.push_str(part);
    begin..text.len()
}

fn is_bare(name: &str, colons: bool) -> bool {
    !name.is_empty() && Line::new(name).name(colons) == name
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
    let mut rest = text;
    while let Some(offset) = rest.find(['\\', '"', '\n']) {
        out.push_str(&rest[..offset]);
        let escaped = match rest.as_bytes()[offset] {
            b'\n' => "\\n",
            b'"' => "\\\"",
            _ => "\\\\",
        };
        out.push_str(escaped);
        rest = &rest[offset + 1..];
    }
    out.push_str(rest);
    out.push('"');
}
