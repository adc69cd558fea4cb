//! A series as it is named in a table: `name{label="value",…}`, labels in the order of their names.
//!
//! Exporters may print labels in any order and with any spacing; one series has one spelling here, from which name and labels
//! can be read back. Names outside of the old alphabet stand in quotes within the braces, as in the exposition itself.

use std::ops::Range;

use super::line::Line;
use super::line::Wrong;

/// Buffers for one series, used again for the next.
#[derive(Debug, Default)]
pub struct Series {
    /// Names and values without escapes, one after the other.
    text: String,
    name: Option<Range<usize>>,
    labels: Vec<(Range<usize>, Range<usize>)>,
    spelled: String,
}

impl Series {
    /// Reads a series; what follows it is left on the line. `spaced`: blanks may come before the braces.
    ///
    /// # Errors
    /// When it has no name or two, a label comes twice, or the braces do not hold labels.
    pub fn read(&mut self, line: &mut Line<'_>, spaced: bool) -> Result<&str, Wrong> {
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
        self.spell();
        Ok(&self.spelled)
    }

    /// Reads labels in braces that belong to no metric, those of an exemplar.
    ///
    /// # Errors
    /// As [`Series::read`].
    pub fn read_exemplar(&mut self, line: &mut Line<'_>) -> Result<(), Wrong> {
        self.clear();
        if !line.take("{") {
            return Err((
                "exemplar",
                format!("`{}` does not begin with braces", line.shown()),
            ));
        }
        self.read_labels(line)?;
        if self.name.is_some() {
            return Err(("exemplar", "a label has no value".to_owned()));
        }
        self.sort()
    }

    /// A metric's name of a HELP, TYPE or UNIT line: as it is, or in quotes.
    ///
    /// # Errors
    /// When there is none.
    pub fn read_name(&mut self, line: &mut Line<'_>) -> Result<&str, Wrong> {
        self.clear();
        let name = line.name(true);
        if name.is_empty() {
            line.quoted("metric", &mut self.text)?;
        } else {
            self.text.push_str(name);
        }
        spell_name(&mut self.spelled, &self.text, true);
        Ok(&self.spelled)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.spelled.clear();
        self.labels.clear();
        self.name = None;
    }

    /// Reads what follows the opening brace, and the closing one.
    fn read_labels(&mut self, line: &mut Line<'_>) -> Result<(), Wrong> {
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
                return Err(("metric", "it has two names".to_owned()));
            }
            line.skip_blanks();
            if !line.take(",") && !line.rest().starts_with('}') {
                return Err(("label", format!("no `,` or `}}` before `{}`", line.shown())));
            }
        }
    }

    fn sort(&mut self) -> Result<(), Wrong> {
        let text = &self.text;
        self.labels
            .sort_by(|(one, _), (other, _)| text[one.clone()].cmp(&text[other.clone()]));
        let twice = self
            .labels
            .windows(2)
            .find(|pair| text[pair[0].0.clone()] == text[pair[1].0.clone()]);
        match twice {
            Some(pair) => Err(("label", format!("`{}` comes twice", &text[pair[0].0.clone()]))),
            None => Ok(()),
        }
    }

    fn spell(&mut self) {
        let Self {
            text,
            name,
            labels,
            spelled,
        } = self;
        let name = &text[name.clone().unwrap_or_default()];
        let bare = is_bare(name, true);
        if bare {
            spelled.push_str(name);
        }
        if bare && labels.is_empty() {
            return;
        }
        spelled.push('{');
        if !bare {
            quote(spelled, name);
        }
        for (place, (label, value)) in labels.iter().enumerate() {
            if place > 0 || !bare {
                spelled.push(',');
            }
            spell_name(spelled, &text[label.clone()], false);
            spelled.push('=');
            quote(spelled, &text[value.clone()]);
        }
        spelled.push('}');
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

fn spell_name(out: &mut String, name: &str, colons: bool) {
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
    while let Some(place) = rest.find(['\\', '"', '\n']) {
        out.push_str(&rest[..place]);
        let escaped = match rest.as_bytes()[place] {
            b'\n' => "\\n",
            b'"' => "\\\"",
            _ => "\\\\",
        };
        out.push_str(escaped);
        rest = &rest[place + 1..];
    }
    out.push_str(rest);
    out.push('"');
}
