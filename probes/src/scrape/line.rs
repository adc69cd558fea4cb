//! Reads the words, names and strings of one line of an exposition.

use std::borrow::Cow;

/// An error in a line: the item and the reason.
pub type LineError = (&'static str, String);

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    rest: &'a str,
    /// One space separates the parts of the line.
    strict: bool,
}

impl<'a> Line<'a> {
    /// A whole line without its newline; `strict` if one space separates its parts.
    #[must_use]
    pub fn new(rest: &'a str, strict: bool) -> Self {
        Self { rest, strict }
    }

    /// The unread rest.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Reads spaces and tabs; true if there were any.
    pub fn skip_blanks(&mut self) -> bool {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        let any = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        any
    }

    /// Reads what separates two parts of the line; true if it is there.
    pub fn separator(&mut self) -> bool {
        if self.strict {
            self.take(" ")
        } else {
            self.skip_blanks()
        }
    }

    /// Reads `text` if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads up to the next space or tab, or to the end.
    pub fn word(&mut self) -> &'a str {
        self.split(self.rest.find([' ', '\t']).unwrap_or(self.rest.len()))
    }

    /// Reads a name in the alphabet of all versions; empty if there is none. Only names of metrics
    /// can have colons.
    pub fn name(&mut self, colons: bool) -> &'a str {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (colons && byte == b':');
        let bytes = self.rest.as_bytes();
        if bytes.first().is_some_and(u8::is_ascii_digit) {
            return "";
        }
        let end = bytes.iter().position(|&byte| !inside(byte));
        self.split(end.unwrap_or(bytes.len()))
    }

    /// Reads a name with or without quotes; true if it had none.
    ///
    /// # Errors
    /// As [`Line::quoted`].
    pub fn name_or_quoted(
        &mut self,
        item: &'static str,
        colons: bool,
    ) -> Result<(Cow<'a, str>, bool), LineError> {
        let bare = self.name(colons);
        if bare.is_empty() {
            Ok((self.quoted(item)?, false))
        } else {
            Ok((Cow::Borrowed(bare), true))
        }
    }

    /// Reads a quoted string without its escapes. A backslash before any character other than `\`,
    /// `"` and `n` is literal, as in Prometheus.
    ///
    /// # Errors
    /// When the opening or closing quote is missing.
    pub fn quoted(&mut self, item: &'static str) -> Result<Cow<'a, str>, LineError> {
        if !self.take("\"") {
            return Err((
                item,
                format!("`{}` is not a string in double quotes", self.shown()),
            ));
        }
        let mut escaped = false;
        let is_end = |character| {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        };
        let Some(end) = self.rest.find(is_end) else {
            return Err((
                item,
                format!("the closing quote of `{}` is missing", self.shown()),
            ));
        };
        let raw = self.split(end);
        self.take("\"");
        Ok(unescape(raw))
    }

    /// The beginning of the unread rest, for a message.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut shown: String = self.rest.chars().take(40).collect();
        if shown.len() < self.rest.len() {
            shown.push('…');
        }
        shown.escape_debug().to_string()
    }

    fn split(&mut self, offset: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(offset);
        self.rest = rest;
        taken
    }
}

fn unescape(raw: &str) -> Cow<'_, str> {
    let mut parts = raw.split('\\');
    let first = parts.next().unwrap_or_default();
    if first.len() == raw.len() {
        return Cow::Borrowed(raw);
    }
    let mut text = first.to_owned();
    while let Some(part) = parts.next() {
        match part.as_bytes().first() {
            Some(b'n') => text.extend(["\n", &part[1..]]),
            Some(b'"') => text.push_str(part),
            Some(_) => text.extend(["\\", part]),
            // The next backslash is escaped.
            None => text.extend(["\\", parts.next().unwrap_or_default()]),
        }
    }
    Cow::Owned(text)
}
