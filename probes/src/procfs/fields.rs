//! Parses words and numbers of a text file in one pass.

use loadprint_recording::rows::Rows;
use memchr::memchr;

use crate::host::ParseError;

/// A position in a text that is read line by line and word by word.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    line: u32,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of the first line.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text, line: 1 }
    }

    /// A cursor in a later part of a file, which starts at line number `line`.
    #[must_use]
    pub fn from_line(text: &'a [u8], line: u32) -> Self {
        Self { rest: text, line }
    }

    /// True after the last line.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of the line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Moves to the beginning of the next line.
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

    /// The bytes before the next `mark` of this line; moves behind it.
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

    /// [`Cursor::word`], for a format that always has a word.
    ///
    /// # Errors
    /// When the line ends.
    pub fn need_word(&mut self, item: &'static str) -> Result<&'a [u8], ParseError> {
        let word = self.word();
        word.ok_or_else(|| self.error(item, "the line ends before it"))
    }

    /// The next key of this line: the bytes before a colon or blank; moves behind the colon.
    pub fn key(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let ends_key = |byte: &u8| *byte <= b' ' || *byte == b':';
        let end = self.rest.iter().position(ends_key).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix(b":").unwrap_or(rest);
        (!key.is_empty()).then_some(key)
    }

    /// The rest of this line, trimmed.
    #[must_use]
    pub fn remainder(&self) -> &'a [u8] {
        let end = memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        self.rest[..end].trim_ascii()
    }

    /// The text after the cursor.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Moves `count` bytes forward, which must be on this line.
    pub fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// The next word as an unsigned number, or `None` at the end of the line.
    ///
    /// # Errors
    /// When the word is not a number, or larger than 64 bits.
    #[inline]
    pub fn uint(&mut self, item: &'static str) -> Result<Option<u64>, ParseError> {
        self.skip_blanks();
        match self.short_uint() {
            Some(value) => Ok(Some(value)),
            None => self.checked_uint(item),
        }
    }

    /// A number of at most nineteen digits, which always fits, before a blank or the end of the
    /// text.
    #[inline]
    fn short_uint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut digits = 0;
        for byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        let rest = &self.rest[digits..];
        let ends = rest.first().is_none_or(|byte| *byte <= b' ');
        if digits == 0 || digits > 19 || !ends {
            return None;
        }
        self.rest = rest;
        Some(value)
    }

    /// The next word as a number of any length, or an error.
    #[cold]
    fn checked_uint(&mut self, item: &'static str) -> Result<Option<u64>, ParseError> {
        let Some(word) = self.word() else { return Ok(None) };
        self.convert(item, word).map(Some)
    }

    /// [`Cursor::uint`], for a format that always has a number.
    ///
    /// # Errors
    /// When the line ends, or the word is not a number.
    #[inline]
    pub fn need_uint(&mut self, item: &'static str) -> Result<u64, ParseError> {
        match self.uint(item)? {
            Some(value) => Ok(value),
            None => Err(self.error(item, "the line ends before it")),
        }
    }

    /// The next word as a signed number.
    ///
    /// # Errors
    /// When the line ends, or the word is not a number.
    #[inline]
    pub fn need_int(&mut self, item: &'static str) -> Result<i64, ParseError> {
        self.skip_blanks();
        if self.rest.first() == Some(&b'-') {
            let word = self.word().unwrap_or_default();
            return self.convert(item, word);
        }
        let value = self.need_uint(item)?;
        i64::try_from(value).map_err(|_| self.error(item, format!("{value} is out of range")))
    }

    /// The next `N` numbers; `None` for those after the end of the line.
    ///
    /// # Errors
    /// When the line has fewer than `at_least` words, or one is not a number.
    pub fn uints<const N: usize>(
        &mut self,
        item: &'static str,
        at_least: usize,
    ) -> Result<[Option<u64>; N], ParseError> {
        let mut values = [None; N];
        for (index, value) in values.iter_mut().enumerate() {
            *value = match self.uint(item)? {
                None if index < at_least => {
                    let reason = format!("the line ends after {index} of {at_least} fields");
                    return Err(self.error(item, reason));
                }
                value => value,
            };
        }
        Ok(values)
    }

    /// `word` as a number of any type.
    ///
    /// # Errors
    /// When it is not a number.
    pub fn convert<T: std::str::FromStr>(&self, item: &'static str, word: &[u8]) -> Result<T, ParseError> {
        let parsed = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        parsed.ok_or_else(|| self.error(item, format!("`{}` is not a number", shown(word))))
    }

    /// A parse error in this line.
    #[must_use]
    pub fn error(&self, item: &'static str, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            item,
            message: message.into(),
        }
    }

    fn skip_blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

/// Calls `parse` at the beginning of each line of a file; it may stop anywhere in the line.
///
/// # Errors
/// Those of `parse`.
pub fn each_line(
    file: &[u8],
    mut parse: impl FnMut(&mut Cursor<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        parse(&mut cursor)?;
        cursor.next_line();
    }
    Ok(())
}

/// The values of the lines `KEY VALUE` or `KEY: VALUE` with these keys; `None` for a missing line.
///
/// # Errors
/// When one of these values is not a number.
pub fn values<const N: usize>(file: &[u8], keys: [&str; N]) -> Result<[Option<u64>; N], ParseError> {
    let mut values = [None; N];
    each_line(file, |cursor| {
        let key = cursor.key().unwrap_or_default();
        if let Some(index) = keys.iter().position(|wanted| wanted.as_bytes() == key) {
            values[index] = Some(cursor.need_uint("value")?);
        }
        Ok(())
    })?;
    Ok(values)
}

/// Appends each line `KEY VALUE` or `KEY: VALUE` as a metric; `first` is usually the first key.
///
/// # Errors
/// When a line has no number, or the file is empty.
pub fn metrics(file: &[u8], first: &'static str, rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if let Some(key) = cursor.key() {
            rows.row(&[key]);
            rows.int(cursor.need_int("value")?);
        }
        Ok(())
    })?;
    not_empty(rows, 0, first)
}

/// A word for an error message: on one line, and cut if it is very long.
fn shown(word: &[u8]) -> String {
    const MOST: usize = 40;
    match word.split_at_checked(MOST) {
        Some((start, rest)) if !rest.is_empty() => format!("{}…", start.escape_ascii()),
        _ => word.escape_ascii().to_string(),
    }
}

/// Refuses a file after which there are only `before` rows.
///
/// # Errors
/// When it has appended no row.
pub fn not_empty(rows: &Rows, before: usize, item: &'static str) -> Result<(), ParseError> {
    if rows.len() > before {
        Ok(())
    } else {
        Err(empty(item))
    }
}

/// The error for a file without a required line.
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
    fn cursor_reads_words_numbers_and_lines() {
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

    /// Every number of digits, at every distance from the end of the text.
    #[test]
    fn numbers_of_any_length_equal_those_of_the_standard_library() {
        for digits in 1..=25 {
            for after in [
                "",
                " ",
                "\n",
                "\t",
                " 1234567 8",
                "x",
                "/2345678",
                ":2345678",
                "\u{b0}2345678",
            ] {
                for pattern in [
                    "1234567890",
                    "9999999999",
                    "0000000000",
                    "1844674407",
                    "0000000007",
                ] {
                    let number: String = pattern.chars().cycle().take(digits).collect();
                    let text = format!("{number}{after}");
                    let mut cursor = Cursor::new(text.as_bytes());
                    let ends = after.bytes().next().is_none_or(|byte| byte <= b' ');
                    match (ends, number.parse::<u64>()) {
                        (true, Ok(value)) => {
                            assert_eq!(cursor.uint("n"), Ok(Some(value)), "{text:?}");
                            assert_eq!(cursor.rest(), after.as_bytes());
                        }
                        _ => assert!(cursor.uint("n").is_err(), "{text:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn errors_have_line_and_item() {
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
