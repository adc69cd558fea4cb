//! Reads required values from the results of statements, as exact integers.

use super::text::Key;
use crate::driver::DbError;
use crate::driver::Failure;
use crate::driver::Row;

/// The result row of a statement.
pub struct Answer<'a> {
    row: Option<&'a Row>,
    key: Key,
}

impl<'a> Answer<'a> {
    /// A row of the result of `key`.
    pub fn of(row: Option<&'a Row>, key: Key) -> Self {
        Self { row, key }
    }

    /// A column's text.
    ///
    /// # Errors
    /// No row, or NULL: the data do not belong to this workload.
    pub fn text(&self, column: usize) -> Result<&'a str, DbError> {
        let text = self
            .row
            .and_then(|row| row.get(column))
            .and_then(Option::as_deref);
        text.ok_or_else(|| self.wrong(column))
    }

    /// A column as an integer.
    ///
    /// # Errors
    /// As above, or a value that is not an integer.
    pub fn int(&self, column: usize) -> Result<i64, DbError> {
        self.text(column)?.parse().map_err(|_| self.wrong(column))
    }

    /// A column as an integer number of its last decimal place.
    pub fn scaled(&self, column: usize, decimals: u32) -> Result<i64, DbError> {
        scaled(self.text(column)?, decimals).ok_or_else(|| self.wrong(column))
    }

    fn wrong(&self, column: usize) -> DbError {
        let (sql, _) = self.key.definition(false);
        DbError::Fatal(Failure {
            errno: 2000,
            sqlstate: "HY000".to_owned(),
            message: format!(
                "no usable value in column {} of the result of `{sql}`: the data do not belong to tproc_c; run check",
                column + 1
            ),
        })
    }
}

/// `-12.3` with two decimals is -1230; further digits are dropped.
fn scaled(text: &str, decimals: u32) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let kept: String = fraction
        .chars()
        .chain("0000000000".chars())
        .take(decimals as usize)
        .collect();
    let value: i64 = format!("{whole}{kept}").parse().ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        assert_eq!(scaled("-10.00", 2), Some(-1000));
        assert_eq!(scaled("0.15", 4), Some(1500));
        assert_eq!(scaled("99", 2), Some(9900));
        assert_eq!(scaled("-0.5", 2), Some(-50));
        assert_eq!(scaled("x", 2), None);
    }
}
