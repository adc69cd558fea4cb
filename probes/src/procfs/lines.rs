//! Reuses the rows of lines that did not change since the previous reading, without parsing them.
//!
//! Most counters of a host do not change within a second. If each line of a file determines its
//! rows alone, the file is compared with its previous content and only the lines that differ are
//! parsed.

use loadprint_recording::rows::Rows;
use memchr::memchr;
use memchr::memchr_iter;
use memchr::memrchr;

use super::fields::Cursor;
use super::fields::common;
use crate::host::ParseError;

/// The previous content of a file, and the number of rows of each line.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    row_counts: Vec<u32>,
    previous_row_counts: Vec<u32>,
    /// The identity of the rows of this text, and the index of the first of them.
    reading: (u64, u64),
    first_row: usize,
}

impl Lines {
    /// Parses `file` line by line into rows of `width` cells. `line` starts at the beginning of a
    /// line and may stop anywhere in it. Its rows must depend only on the line and its number, and
    /// contain neither texts nor lists.
    ///
    /// # Errors
    /// Those of `line`; the next reading is then parsed completely.
    pub fn parse(
        &mut self,
        file: &[u8],
        width: usize,
        rows: &mut Rows,
        mut line: impl FnMut(&mut Cursor<'_>, &mut Rows) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let first_row = rows.len();
        std::mem::swap(&mut self.row_counts, &mut self.previous_row_counts);
        self.row_counts.clear();
        let (generation, reading) = rows.reading();
        let mut text = if (self.reading, self.first_row) == ((generation, reading.wrapping_sub(1)), first_row)
        {
            self.text.as_slice()
        } else {
            &[]
        };
        // A reading that fails cannot be reused.
        self.reading = (0, 0);
        // The end of the rows of the same lines at the previous reading.
        let mut previous_end = first_row;
        let mut cursor = Cursor::new(file);
        while !cursor.at_end() {
            let same = whole_lines(cursor.rest(), text);
            if !same.is_empty() {
                let lines = memchr_iter(b'\n', same).count();
                let counts = &self.previous_row_counts[self.row_counts.len()..][..lines];
                let count: u32 = counts.iter().sum();
                if rows.len() == previous_end && rows.again(count as usize, width) {
                    previous_end = rows.len();
                    self.row_counts.extend_from_slice(counts);
                    text = &text[same.len()..];
                    cursor.skip_lines(same.len(), lines);
                    continue;
                }
                text = &[];
            }
            let start = rows.len();
            let previous = self.previous_row_counts.get(self.row_counts.len());
            previous_end += previous.map_or(0, |count| *count as usize);
            line(&mut cursor, rows)?;
            self.row_counts.push((rows.len() - start) as u32);
            cursor.next_line();
            text = memchr(b'\n', text).map_or(&[], |end| &text[end + 1..]);
        }
        self.text.clear();
        self.text.extend_from_slice(file);
        self.reading = rows.reading();
        self.first_row = first_row;
        Ok(())
    }
}

/// The lines with which both `text` and `before` begin.
fn whole_lines<'a>(text: &'a [u8], before: &[u8]) -> &'a [u8] {
    let same = &text[..common(text, before)];
    memrchr(b'\n', same).map_or(&[], |end| &same[..=end])
}

/// The previous content of a line of numbers, each after a single blank.
#[derive(Debug, Default)]
pub struct Numbers {
    text: Vec<u8>,
}

impl Numbers {
    /// Parses `count` numbers into the rows of the previous tick, one for each row. `as_before`:
    /// those rows are the ones of the previous content.
    ///
    /// # Errors
    /// When a word is not a number, or the line ends before the last.
    pub fn parse(
        &mut self,
        values: &mut Cursor<'_>,
        count: usize,
        as_before: bool,
        rows: &mut Rows,
    ) -> Result<(), ParseError> {
        let line = values.line_text();
        let mut text = if as_before { self.text.as_slice() } else { &[] };
        let mut left = count;
        while left > 0 {
            let same = whole_words(values.line_text(), text);
            let words = memchr_iter(b' ', same).count().min(left);
            if words > 0 && rows.again(words, 1) {
                left -= words;
                values.skip(same.len());
                text = &text[same.len()..];
                continue;
            }
            rows.row_again();
            rows.int(values.need_int("value")?);
            left -= 1;
            // Moves behind the previous number.
            text = text
                .get(1..)
                .map_or(&[], |rest| memchr(b' ', rest).map_or(&[], |end| &rest[end..]));
        }
        self.text.clear();
        // As many blanks as numbers: there are no two in a row and none at the end.
        let blanks = memchr_iter(b' ', line).count();
        if blanks == count && line.first() == Some(&b' ') && memchr(b'\t', line).is_none() {
            self.text.extend_from_slice(line);
        }
        Ok(())
    }
}

/// The whole words with which both `text` and `before` begin, each with the blank before it.
fn whole_words<'a>(text: &'a [u8], before: &[u8]) -> &'a [u8] {
    let same = &text[..common(text, before)];
    if same.len() == text.len() && text.len() == before.len() {
        return same;
    }
    memrchr(b' ', same).map_or(&[], |end| &same[..end])
}
