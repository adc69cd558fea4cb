//! Parses words and numbers of a text file in one pass.
//!
//! A word that is no value of its column is an odd cell: it is counted and missing. A line that is
//! not as documented is counted and has no row.

use std::str::FromStr;

use loadprint_recording::rows::Odd;
use loadprint_recording::rows::Rows;
use memchr::memchr;

use crate::source::ParseError;

/// A position in a text that is read line by line and word by word.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    line: u32,
    odd: Odd,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of the first line.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            line: 1,
            odd: Odd::default(),
        }
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

    /// The bytes before the last `mark` of this line; moves behind it.
    pub fn until_last(&mut self, mark: u8) -> Option<&'a [u8]> {
        let end = memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let place = memchr::memrchr(mark, &self.rest[..end])?;
        let word = &self.rest[..place];
        self.rest = &self.rest[place + 1..];
        Some(word)
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

    /// The next word as an unsigned number; `None` at the end of the line and for an odd cell.
    #[inline]
    pub fn uint(&mut self, item: &'static str) -> Option<u64> {
        self.skip_blanks();
        self.short_uint().or_else(|| self.long(item))
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

    /// The next word as a signed number; `None` at the end of the line and for an odd cell.
    pub fn int(&mut self, item: &'static str) -> Option<i64> {
        self.long(item)
    }

    /// The next word as a number of any type and length.
    #[cold]
    fn long<T: FromStr>(&mut self, item: &'static str) -> Option<T> {
        let word = self.word()?;
        self.number(item, word)
    }

    /// The next `N` numbers, and how many of them the line has.
    pub fn uints<const N: usize>(&mut self, item: &'static str) -> ([Option<u64>; N], usize) {
        let mut values = [None; N];
        for (index, value) in values.iter_mut().enumerate() {
            if self.ends() {
                return (values, index);
            }
            *value = self.uint(item);
        }
        (values, N)
    }

    /// True if no word follows on this line.
    pub fn ends(&mut self) -> bool {
        self.skip_blanks();
        self.rest.first().is_none_or(|byte| *byte == b'\n')
    }

    /// `word` as a number of any type; `None` for an odd cell.
    pub fn number<T: FromStr>(&mut self, item: &'static str, word: &[u8]) -> Option<T> {
        let parsed = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        if parsed.is_none() {
            let line = self.line;
            self.odd
                .cell(|| format!("line {line}: {item}: `{}` is not its value", shown(word)));
        }
        parsed
    }

    /// Counts this line as odd; `why` it is not as documented.
    pub fn odd_line(&mut self, why: &'static str) {
        let line = self.line;
        self.odd.line(|| format!("line {line}: {why}"));
    }

    /// What was not read so far.
    #[must_use]
    pub fn into_odd(self) -> Odd {
        self.odd
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

/// Calls `parse` at the beginning of each line of a file; it may stop anywhere in the line. Returns
/// what was not read.
pub fn each_line(file: &[u8], mut parse: impl FnMut(&mut Cursor<'_>)) -> Odd {
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        parse(&mut cursor);
        cursor.next_line();
    }
    cursor.odd
}

/// The values of the lines `KEY VALUE` or `KEY: VALUE` with these keys; `None` for a missing line.
pub fn values<const N: usize>(file: &[u8], keys: [&str; N], odd: &mut Odd) -> [Option<u64>; N] {
    let mut values = [None; N];
    odd.add(&each_line(file, |cursor| {
        let key = cursor.key().unwrap_or_default();
        if let Some(index) = keys.iter().position(|wanted| wanted.as_bytes() == key) {
            values[index] = cursor.uint("value");
        }
    }));
    values
}

/// Appends each line `KEY VALUE` or `KEY: VALUE` as a metric; `first` is usually the first key.
///
/// # Errors
/// When the file has no such line.
pub fn metrics(file: &[u8], first: &'static str, rows: &mut Rows) -> Result<(), ParseError> {
    let odd = each_line(file, |cursor| {
        if let Some(key) = cursor.key() {
            if cursor.ends() {
                cursor.odd_line("a key without a value");
            } else {
                rows.row(&[key]);
                rows.int_or_null(cursor.int("value"));
            }
        }
    });
    rows.odd_mut().add(&odd);
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
        assert_eq!(cursor.uint("user"), Some(1));
        assert_eq!(cursor.uint("nice"), Some(u64::MAX));
        assert!(cursor.ends());
        assert_eq!(cursor.uint("system"), None);
        cursor.next_line();
        assert_eq!(cursor.until(b':'), Some(b"name".as_slice()));
        assert_eq!(cursor.int("value"), Some(-5));
        assert_eq!(cursor.remainder(), b"x");
        cursor.next_line();
        assert!(cursor.at_end());
        assert_eq!(cursor.word(), None);
        assert!(cursor.into_odd().is_empty());
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
                            assert_eq!(cursor.uint("n"), Some(value), "{text:?}");
                            assert_eq!(cursor.rest(), after.as_bytes());
                        }
                        _ => {
                            assert_eq!(cursor.uint("n"), None, "{text:?}");
                            assert_eq!(cursor.into_odd().cells, 1, "{text:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn odd_cells_are_missing_and_counted_with_line_and_item() {
        for word in ["12x", "18446744073709551616", "-1"] {
            let text = format!("\n{word} 7");
            let mut cursor = Cursor::new(text.as_bytes());
            cursor.next_line();
            assert_eq!((cursor.uint("reads"), cursor.uint("writes")), (None, Some(7)));
            assert_eq!(
                cursor.into_odd().to_string(),
                format!("1 cell (line 2: reads: `{word}` is not its value)")
            );
        }
        assert_eq!(Cursor::new(b"9223372036854775808").int("value"), None);
    }
}
