//! Formats the timestamp of a transaction like HammerDB's driver, in UTC.

use std::time::Duration;
use std::time::UNIX_EPOCH;

use loadprint_recording::clock::realtime_ns;

/// The text of a second, formatted again when the second changes.
#[derive(Debug, Default)]
pub struct Timestamp {
    second: i64,
    digits: String,
}

impl Timestamp {
    /// The SQL expression of the present second.
    pub fn text(&mut self) -> String {
        format!("str_to_date({},'%Y%m%d%H%i%s')", self.digits())
    }

    /// Fourteen digits.
    fn digits(&mut self) -> &str {
        let second = realtime_ns() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.digits = digits_of(second);
        }
        &self.digits
    }
}

fn digits_of(second: i64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(second).unwrap_or(0));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_fourteen_digits() {
        assert_eq!(digits_of(1_709_210_096), "20240229123456");
        assert!(Timestamp::default().text().starts_with("str_to_date(20"));
    }
}
