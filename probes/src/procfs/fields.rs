//! Parses words and numbers of a text file in one pass.

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

    /// Moves behind `word` and `mark` if they come next.
    pub fn take(&mut self, word: &[u8], mark: u8) -> bool {
        let after = self
            .rest
            .strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(&[mark]));
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
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

    /// This line from the cursor to its end.
    #[must_use]
    pub fn line_text(&self) -> &'a [u8] {
        &self.rest[..memchr(b'\n', self.rest).unwrap_or(self.rest.len())]
    }

    /// Moves `bytes` forward, which must be `lines` whole lines.
    pub fn skip_lines(&mut self, bytes: usize, lines: usize) {
        self.rest = &self.rest[bytes..];
        self.line += lines as u32;
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
        let mut rest = self.rest;
        let mut value = 0u64;
        let mut digits = 0;
        // Eight bytes at a time while that many remain.
        while let Some((eight, _)) = rest.split_first_chunk::<8>() {
            let (count, part) = leading_digits(u64::from_le_bytes(*eight));
            value = value.wrapping_mul(POWERS[count]).wrapping_add(part);
            digits += count;
            rest = &rest[count..];
            if count < 8 {
                break;
            }
        }
        if rest.len() < 8 {
            for byte in rest {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    break;
                }
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
                digits += 1;
            }
            rest = &self.rest[digits..];
        }
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

/// Powers of ten up to the eighth.
const POWERS: [u64; 9] = [
    1,
    10,
    100,
    1000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// The number of leading digits among eight bytes, the first one lowest, and the number that they
/// form.
///
/// It combines pairs of digits in parallel, then pairs of these, then both halves (Lemire, "Number
/// parsing at a gigabyte per second", Software: Practice and Experience 51, 2021, section 2).
#[inline]
fn leading_digits(eight: u64) -> (usize, u64) {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let digits = eight ^ ZEROS;
    // The highest bit of each byte that is not a digit: for values of 10 or more, adding 0x76 sets
    // it.
    let others =
        (((digits & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 {
        return (0, 0);
    }
    // Shifts in leading zeros.
    let digits = digits << (64 - 8 * count);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let quads = (pairs & 0x00ff_00ff_00ff_00ff)
        .wrapping_mul(100)
        .wrapping_add((pairs >> 16) & 0x0000_00ff_0000_00ff);
    let value = (quads & 0xffff)
        .wrapping_mul(10_000)
        .wrapping_add((quads >> 32) & 0xffff);
    (count, value)
}

/// The length of the common prefix of two texts.
#[must_use]
#[inline]
pub fn common(text: &[u8], other: &[u8]) -> usize {
    let (steps, _) = text.as_chunks::<32>();
    let (others, _) = other.as_chunks::<32>();
    let same = 32
        * steps
            .iter()
            .zip(others)
            .take_while(|(one, two)| one == two)
            .count();
    let (text, other) = (&text[same..], &other[same..]);
    let mut offset = 0;
    while let (Some(one), Some(two)) = (text[offset..].first_chunk(), other[offset..].first_chunk()) {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*two);
        if differ != 0 {
            return same + offset + differ.trailing_zeros() as usize / 8;
        }
        offset += 8;
    }
    let bytes = text[offset..].iter().zip(&other[offset..]);
    same + offset + bytes.take_while(|(one, two)| one == two).count()
}

/// A word for an error message: on one line, and cut if it is very long.
fn shown(word: &[u8]) -> String {
    const MOST: usize = 40;
    match word.split_at_checked(MOST) {
        Some((start, rest)) if !rest.is_empty() => format!("{}…", start.escape_ascii()),
        _ => word.escape_ascii().to_string(),
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
    fn common_prefix_has_any_length() {
        let text: Vec<u8> = (0..200).collect();
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 0x80;
            assert_eq!((common(&text, &other), common(&text[..at], &text)), (at, at));
        }
        assert_eq!(common(&text, &text), text.len());
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
