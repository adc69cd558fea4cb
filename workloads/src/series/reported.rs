//! Writes the interval reports of an external generator as `throughput.parquet`, with the columns
//! of the native series. A row lasts from the end of the previous row, or from the start of the
//! window, to its own time. Columns without a report are null.

use std::path::Path;

use anyhow::Result;
use loadprint_recording::clock;
use serde_json::Value as Json;

use super::COUNTS;
use super::Row;
use super::columns;
use super::throughput_metadata;

/// A time on both clocks, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME.
    pub realtime_ns: i64,
}

impl Timestamp {
    /// The current time.
    pub fn now() -> Self {
        Self {
            monotonic_ns: clock::monotonic_ns(),
            realtime_ns: clock::realtime_ns(),
        }
    }

    /// Seconds since an earlier time.
    pub fn since(self, earlier: Self) -> f64 {
        (self.monotonic_ns - earlier.monotonic_ns) as f64 / 1e9
    }
}

/// One interval report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedInterval {
    /// Its end: the time when its line was read.
    pub end: Timestamp,
    /// Counts by column.
    pub counts: Vec<(&'static str, u64)>,
    /// 95th percentile in milliseconds.
    pub p95: Option<f64>,
}

impl ReportedInterval {
    /// Makes the next row from rates per second; it ends at `end`. A late line lengthens its
    /// interval and shortens the next one; the rates remain those that were reported.
    pub fn from_rates(
        rows: &[Self],
        begin: Timestamp,
        end: Timestamp,
        rates: &[(&'static str, f64)],
        p95: Option<f64>,
    ) -> Self {
        let length = end.since(rows.last().map_or(begin, |row| row.end));
        let count = |rate: f64| (rate * length).round() as u64;
        Self {
            end,
            counts: rates.iter().map(|(name, rate)| (*name, count(*rate))).collect(),
            p95,
        }
    }

    /// The count of a column; `None` if it was not reported.
    pub fn get(&self, column: &str) -> Option<u64> {
        let mut counts = self.counts.iter();
        counts.find(|(name, _)| *name == column).map(|(_, count)| *count)
    }
}

/// Adds a column as a fixed share of another one.
pub fn derive_column(intervals: &mut [ReportedInterval], source: &str, column: &'static str, share: f64) {
    for interval in intervals {
        if let Some(count) = interval.get(source) {
            interval
                .counts
                .push((column, (count as f64 * share).round() as u64));
        }
    }
}

/// Makes the rows of a window add up to the totals of their columns and reach to its end. The
/// difference is added to one row for all columns: a new row if the time since the last report
/// exceeds half an interval, else the last row.
pub fn reconcile(
    rows: &mut Vec<ReportedInterval>,
    window: (Timestamp, Timestamp),
    totals: &[(&'static str, u64)],
) {
    let (begin, end) = window;
    let last = rows.last().map_or(begin, |row| row.end);
    let usual = last.since(begin) / rows.len().max(1) as f64;
    let mut left = Vec::new();
    for (name, total) in totals {
        if !rows.is_empty() && rows.iter().all(|row| row.get(name).is_none()) {
            continue; // only in the summary
        }
        let sum: u64 = rows.iter().filter_map(|row| row.get(name)).sum();
        if sum > *total {
            shrink(rows, name, sum, *total);
        }
        left.push((*name, total.saturating_sub(sum)));
    }
    match rows.last_mut() {
        Some(row) if end.since(last) < usual / 2.0 => {
            row.end = if end.since(last) > 0.0 { end } else { last };
            for (name, amount) in left {
                match row.counts.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += amount,
                    None => row.counts.push((name, amount)),
                }
            }
        }
        _ if !left.is_empty() => rows.push(ReportedInterval {
            end,
            counts: left,
            p95: None,
        }),
        _ => {}
    }
}

/// Reduces all rows in proportion, where rounding made their sum too large.
fn shrink(rows: &mut [ReportedInterval], column: &str, sum: u64, total: u64) {
    let share = |so_far: u64| (u128::from(so_far) * u128::from(total) / u128::from(sum)) as u64;
    let mut so_far = 0;
    for row in rows {
        for (_, count) in row.counts.iter_mut().filter(|(name, _)| *name == column) {
            let before = share(so_far);
            so_far += *count;
            *count = share(so_far) - before;
        }
    }
}

/// Writes the table, with one transaction type for all rows.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, intervals: &[ReportedInterval], kind: &str, boot_id: &str) -> Result<()> {
    let row = |(number, interval): (u32, &ReportedInterval)| Row {
        kind,
        number,
        end: interval.end,
        counts: COUNTS.map(|(name, ..)| interval.get(name)),
        backlog: None,
        p95_ms: interval.p95,
    };
    let rows: Vec<Row<'_>> = (0..).zip(intervals).map(row).collect();
    let mut about = throughput_metadata(boot_id);
    // The intervals vary; their ends are in the rows.
    about["interval_ns"] = Json::Null;
    super::write(path, &about, columns(&rows, |_| true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Timestamp {
        let ns = (seconds * 1e9) as i64;
        Timestamp {
            monotonic_ns: 1_000_000_000 + ns,
            realtime_ns: 2_000_000_000 + ns,
        }
    }

    /// Rows of one second each, reconciled at `end`: their ends and counts.
    fn reconciled(counts: &[u64], end: f64, total: u64) -> Vec<(Timestamp, u64)> {
        let row = |(place, count): (usize, &u64)| ReportedInterval {
            end: at(place as f64 + 1.0),
            counts: vec![("events", *count)],
            p95: None,
        };
        let mut rows: Vec<ReportedInterval> = counts.iter().enumerate().map(row).collect();
        reconcile(&mut rows, (at(0.0), at(end)), &[("events", total)]);
        rows.iter()
            .map(|row| (row.end, row.get("events").unwrap()))
            .collect()
    }

    #[test]
    fn intervals_sum_to_the_total_and_end_with_the_window() {
        assert_eq!(
            reconciled(&[100, 100], 2.01, 201),
            [(at(1.0), 100), (at(2.01), 101)]
        );
        assert_eq!(
            reconciled(&[100, 100], 3.0, 290),
            [(at(1.0), 100), (at(2.0), 100), (at(3.0), 90)]
        );
        assert_eq!(reconciled(&[], 1.0, 7), [(at(1.0), 7)]);
        // A stall at the end is an interval without events; the window does not end earlier.
        assert_eq!(reconciled(&[100], 2.0, 100), [(at(1.0), 100), (at(2.0), 0)]);
    }

    #[test]
    fn a_surplus_is_subtracted_from_every_interval() {
        assert_eq!(reconciled(&[100, 100], 2.0, 198), [(at(1.0), 99), (at(2.0), 99)]);
        assert_eq!(reconciled(&[5, 1], 2.0, 3), [(at(1.0), 2), (at(2.0), 1)]);
        assert_eq!(reconciled(&[5, 1], 2.0, 0), [(at(1.0), 0), (at(2.0), 0)]);
    }

    #[test]
    fn all_columns_end_in_one_interval() {
        let counts = |events, queries| vec![("events", events), ("queries", queries)];
        let mut rows = vec![ReportedInterval {
            end: at(1.0),
            counts: counts(10, 200),
            p95: Some(2.0),
        }];
        let totals = [("events", 25), ("queries", 480), ("reconnects", 3)];
        reconcile(&mut rows, (at(0.0), at(2.4)), &totals);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].end, &rows[1].counts), (at(2.4), &counts(15, 280)));
        assert_eq!(rows[1].get("reconnects"), None, "no interval reports them");
    }

    #[test]
    fn a_late_line_changes_no_rate() {
        let mut rows = Vec::new();
        for (end, rate) in [(1.0, 100.0), (2.5, 100.0), (3.0, 140.0)] {
            rows.push(ReportedInterval::from_rates(
                &rows,
                at(0.0),
                at(end),
                &[("events", rate)],
                None,
            ));
        }
        let counts: Vec<_> = rows.iter().map(|row| row.get("events")).collect();
        assert_eq!(counts, [Some(100), Some(150), Some(70)]);
    }
}
