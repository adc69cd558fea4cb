//! Reads the words, names and strings of one line of an exposition.

/// An error in a line: the item and the reason.
pub type LineError = (&'static str, String);

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// A whole line without its newline.
    #[must_use]
    pub fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    /// The unread rest.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// True if the whole line was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads spaces and tabs; true if there were any.
    pub fn skip_blanks(&mut self) -> bool {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        let any = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        any
    }

    /// Reads `text` if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
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

    /// Reads a quoted string and appends it to `out` without its escapes. A backslash before any
    /// character other than `\`, `"` and `n` is literal, as in Prometheus.
    ///
    /// # Errors
    /// When the opening or closing quote is missing.
    pub fn quoted(&mut self, item: &'static str, out: &mut String) -> Result<(), LineError> {
        if !self.take("\"") {
            return Err((
                item,
                format!("`{}` is not a string in double quotes", self.shown()),
            ));
        }
        loop {
            let Some(offset) = self.rest.find(['"', '\\']) else {
                return Err((
                    item,
                    format!("the closing quote of `{}` is missing", self.shown()),
                ));
            };
            out.push_str(self.split(offset));
            if self.take("\"") {
                return Ok(());
            }
            if self.take("\\n") {
                out.push('\n');
            } else if self.take("\\\"") {
                out.push('"');
            } else {
                out.push('\\');
                // A single backslash is literal.
                let _doubled = self.take("\\\\") || self.take("\\");
            }
        }
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
