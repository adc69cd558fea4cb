//! Lines that did not change since the reading before: their rows are taken again, and nobody parses them.
//!
//! Most counters of a host stand still from one second to the next. Files of lines, each of which gives its rows by itself,
//! are compared with what they were, and only the lines that differ are parsed.

use loadprint_recording::rows::Rows;
use memchr::memchr;
use memchr::memchr_iter;
use memchr::memrchr;

use super::fields::Cursor;
use super::fields::common;
use crate::host::ParseError;

/// A file as it was at the reading before, and how many rows each of its lines gave.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    gave: Vec<u32>,
    before: Vec<u32>,
    /// What the rows say of themselves if they are those of this text, and where among them its own began.
    reading: (u64, u64),
    place: usize,
}

impl Lines {
    /// Parses `file` line by line into rows of `width` cells. `line` begins at the start of a line and may stop anywhere in
    /// it; what it gives must follow from the line and its number alone, and hold neither texts nor lists.
    ///
    /// # Errors
    /// Those of `line`; the next reading is then parsed in whole.
    pub fn parse(
        &mut self,
        file: &[u8],
        width: usize,
        rows: &mut Rows,
        mut line: impl FnMut(&mut Cursor<'_>, &mut Rows) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let place = rows.len();
        std::mem::swap(&mut self.gave, &mut self.before);
        self.gave.clear();
        let (generation, reading) = rows.reading();
        let mut text = if (self.reading, self.place) == ((generation, reading.wrapping_sub(1)), place) {
            self.text.as_slice()
        } else {
            &[]
        };
        // Until it has ended well there is no reading before.
        self.reading = (0, 0);
        // Where the rows of the lines so far ended before.
        let mut ended = place;
        let mut cursor = Cursor::new(file);
        while !cursor.at_end() {
            let same = whole_lines(cursor.rest(), text);
            if !same.is_empty() {
                let lines = memchr_iter(b'\n', same).count();
                let gave = &self.before[self.gave.len()..][..lines];
                let count: u32 = gave.iter().sum();
                if rows.len() == ended && rows.again(count as usize, width) {
                    ended = rows.len();
                    self.gave.extend_from_slice(gave);
                    text = &text[same.len()..];
                    cursor.skip_lines(same.len(), lines);
                    continue;
                }
                text = &[];
            }
            let start = rows.len();
            ended += self.before.get(self.gave.len()).map_or(0, |gave| *gave as usize);
            line(&mut cursor, rows)?;
            self.gave.push((rows.len() - start) as u32);
            cursor.next_line();
            text = memchr(b'\n', text).map_or(&[], |end| &text[end + 1..]);
        }
        self.text.clear();
        self.text.extend_from_slice(file);
        self.reading = rows.reading();
        self.place = place;
        Ok(())
    }
}

/// The lines at the beginning of `text` that `before` begins with, too.
fn whole_lines<'a>(text: &'a [u8], before: &[u8]) -> &'a [u8] {
    let same = &text[..common(text, before)];
    memrchr(b'\n', same).map_or(&[], |end| &same[..=end])
}

/// Numbers of one line as they were at the reading before, each behind a single blank.
#[derive(Debug, Default)]
pub struct Numbers {
    text: Vec<u8>,
}

impl Numbers {
    /// Parses `count` numbers, one a row, into rows that come again; `as_before` says that the rows of the tick before are those
    /// of the line before.
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
            // Behind this number, whatever it was before.
            text = text
                .get(1..)
                .map_or(&[], |rest| memchr(b' ', rest).map_or(&[], |end| &rest[end..]));
        }
        self.text.clear();
        // With a blank for each number there are no two in a row, and none at the end.
        let blanks = memchr_iter(b' ', line).count();
        if blanks == count && line.first() == Some(&b' ') && memchr(b'\t', line).is_none() {
            self.text.extend_from_slice(line);
        }
        Ok(())
    }
}

/// The words at the beginning of `text` that `before` begins with, too, and that end there; each with the blank before it.
fn whole_words<'a>(text: &'a [u8], before: &[u8]) -> &'a [u8] {
    let same = &text[..common(text, before)];
    if same.len() == text.len() && text.len() == before.len() {
        return same;
    }
    memrchr(b' ', same).map_or(&[], |end| &same[..end])
}
