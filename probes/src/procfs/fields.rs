//! Words and numbers of a text file, in one pass over its bytes.

use memchr::memchr;

use crate::host::ParseError;

/// A place in a text that is read line by line, word by word.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    line: u32,
}

impl<'a> Cursor<'a> {
    /// At the first word of the first line.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text, line: 1 }
    }

    /// True behind the last line.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of the line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Goes to the beginning of the next line.
    pub fn next_line(&mut self) {
        self.rest = memchr(b'\n', self.rest).map_or(&[], |end| &self.rest[end + 1..]);
        self.line += 1;
    }

    /// The next word of this line, or `None` at its end.
    pub fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let end = self
            .rest
            .iter()
            .position(|byte| *byte <= b' ')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// The bytes before the next `mark` of this line; the cursor then stands behind it.
    pub fn until(&mut self, mark: u8) -> Option<&'a [u8]> {
        let end = self
            .rest
            .iter()
            .position(|byte| *byte == mark || *byte == b'\n')?;
        if self.rest[end] != mark {
            return None;
        }
        let word = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(word)
    }

    /// Goes behind `word` and `mark` if they come next.
    pub fn take(&mut self, word: &[u8], mark: u8) -> bool {
        let behind = self
            .rest
            .strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(&[mark]));
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// The rest of this line without blanks at its ends.
    #[must_use]
    pub fn remainder(&self) -> &'a [u8] {
        let end = memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        self.rest[..end].trim_ascii()
    }

    /// All that has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Goes `count` bytes on, which must lie on this line.
    pub fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// The next word as an unsigned number, or `None` at the end of the line.
    ///
    /// # Errors
    /// When the word is not a number, or larger than 64 bits.
    pub fn uint(&mut self, item: &'static str) -> Result<Option<u64>, ParseError> {
        self.skip_blanks();
        let mut value = 0u64;
        let mut digits = 0;
        for byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // Nineteen digits always fit; the word is read again with care if there are more.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        let ends = self.rest.get(digits).is_none_or(|byte| *byte <= b' ');
        if digits > 0 && digits <= 19 && ends {
            self.rest = &self.rest[digits..];
            return Ok(Some(value));
        }
        let Some(word) = self.word() else { return Ok(None) };
        self.convert(item, word).map(Some)
    }

    /// [`Cursor::uint`] where the format promises a number.
    ///
    /// # Errors
    /// When the line ends, or the word is not a number.
    pub fn need_uint(&mut self, item: &'static str) -> Result<u64, ParseError> {
        self.uint(item)?
            .ok_or_else(|| self.error(item, "the line ends before it"))
    }

    /// The next word as a signed number.
    ///
    /// # Errors
    /// When the line ends, or the word is not a number.
    pub fn need_int(&mut self, item: &'static str) -> Result<i64, ParseError> {
        self.skip_blanks();
        if self.rest.first() == Some(&b'-') {
            let word = self.word().unwrap_or_default();
            return self.convert(item, word);
        }
        let value = self.need_uint(item)?;
        i64::try_from(value).map_err(|_| self.error(item, format!("{value} is out of range")))
    }

    /// `word` as a number of any type.
    ///
    /// # Errors
    /// When it is not one.
    pub fn convert<T: std::str::FromStr>(&self, item: &'static str, word: &[u8]) -> Result<T, ParseError> {
        let parsed = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        parsed.ok_or_else(|| self.error(item, format!("`{}` is not a number", shown(word))))
    }

    /// An error at this line.
    #[must_use]
    pub fn error(&self, item: &'static str, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            item,
            message: message.into(),
        }
    }

    fn skip_blanks(&mut self) {
        let blanks = self
            .rest
            .iter()
            .take_while(|byte| **byte == b' ' || **byte == b'\t')
            .count();
        self.rest = &self.rest[blanks..];
    }
}

/// A word as an error shows it: on one line, and the beginning only if it is very long.
fn shown(word: &[u8]) -> String {
    const MOST: usize = 40;
    match word.split_at_checked(MOST) {
        Some((start, rest)) if !rest.is_empty() => format!("{}…", start.escape_ascii()),
        _ => word.escape_ascii().to_string(),
    }
}

/// An error for a file that has nothing of what its format promises.
#[must_use]
pub fn empty(item: &'static str) -> ParseError {
    ParseError {
        line: 1,
        item,
        message: "the file has no such line".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_lines() {
        let mut cursor = Cursor::new(b"cpu  1 \t18446744073709551615\nname: -5 x\n");
        assert_eq!(cursor.word(), Some(b"cpu".as_slice()));
        assert_eq!(cursor.need_uint("user"), Ok(1));
        assert_eq!(cursor.need_uint("nice"), Ok(u64::MAX));
        assert_eq!(cursor.uint("system"), Ok(None));
        cursor.next_line();
        assert_eq!(cursor.until(b':'), Some(b"name".as_slice()));
        assert_eq!(cursor.need_int("value"), Ok(-5));
        assert_eq!(cursor.remainder(), b"x");
        cursor.next_line();
        assert!(cursor.at_end());
        assert_eq!(cursor.word(), None);
    }

    #[test]
    fn errors_carry_line_and_item() {
        for (text, message) in [
            ("\n12x", "`12x` is not a number"),
            ("\n18446744073709551616", "`18446744073709551616` is not a number"),
            ("\n-1", "`-1` is not a number"),
            ("\n", "the line ends before it"),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            cursor.next_line();
            let error = cursor.need_uint("reads").unwrap_err();
            assert_eq!(
                error,
                ParseError {
                    line: 2,
                    item: "reads",
                    message: message.to_owned()
                }
            );
        }
        assert!(Cursor::new(b"9223372036854775808").need_int("value").is_err());
    }
}
