//! Measures the difference between this host's clocks and the server's CLOCK_REALTIME, through a
//! connection to the server. The analysis aligns recordings of several hosts with it.

use anyhow::Context;
use anyhow::Result;
use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::clock::realtime_ns;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::Connection;
use crate::driver::Row;

/// Round trips of a measurement; the shortest one is used, whose bound is the smallest.
const ROUND_TRIPS: usize = 20;
/// Of the answer in microseconds: SYSDATE(6) cuts off what is below.
const RESOLUTION_NS: i64 = 1_000;
/// In UTC: a local time is ambiguous when daylight saving time ends.
const SET_UTC: &str = "SET time_zone = '+00:00'";
/// A product of decimals, which is exact.
const NOW: &str = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)";

/// The clocks of both hosts at one moment, in the middle of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// This host's CLOCK_MONOTONIC.
    pub monotonic_ns: i64,
    /// This host's CLOCK_REALTIME.
    pub realtime_ns: i64,
    /// The server's CLOCK_REALTIME.
    pub server_realtime_ns: i64,
    /// The largest error of `server_realtime_ns`.
    pub bound_ns: i64,
}

impl ClockReading {
    /// Reads the server's clock some times and keeps the best reading.
    ///
    /// # Errors
    /// If the server does not answer with its time.
    pub fn measure(connection: &mut dyn Connection) -> Result<Self> {
        connection.query(SET_UTC.as_bytes())?;
        let readings = (0..ROUND_TRIPS).map(|_| Self::read(connection));
        let readings = readings.collect::<Result<Vec<_>>>()?;
        let best = readings.into_iter().min_by_key(|reading| reading.bound_ns);
        best.context("no reading")
    }

    fn read(connection: &mut dyn Connection) -> Result<Self> {
        let (begin, realtime) = (monotonic_ns(), realtime_ns());
        let rows = connection.rows(NOW)?;
        let half = (monotonic_ns() - begin) / 2;
        Ok(Self {
            monotonic_ns: begin + half,
            realtime_ns: realtime + half,
            server_realtime_ns: server_time(&rows)
                .with_context(|| format!("the server's answer to {NOW}: {rows:?}"))?,
            bound_ns: half + RESOLUTION_NS,
        })
    }

    /// The line of `clock.jsonl`.
    pub fn to_json(self, at: &str, boot_id: &str) -> Json {
        json!({
            "at": at,
            "boot_id": boot_id,
            "monotonic_ns": self.monotonic_ns,
            "realtime_ns": self.realtime_ns,
            "server_realtime_ns": self.server_realtime_ns,
            "bound_ns": self.bound_ns,
        })
    }
}

/// Nanoseconds since 1970 of an answer in microseconds.
fn server_time(rows: &[Row]) -> Option<i64> {
    let microseconds: i64 = rows.first()?.first()?.as_deref()?.parse().ok()?;
    // Zero is the answer of a server whose clock is outside of its range.
    microseconds.checked_mul(RESOLUTION_NS).filter(|time| *time > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<i64> {
        server_time(&[vec![Some(text.to_owned())]])
    }

    #[test]
    fn an_answer_that_is_no_time_gives_none() {
        assert_eq!(parsed("1763877460123456"), Some(1_763_877_460_123_456_000));
        for text in ["", "0", "-1", "1e9", "now", "9999999999999999"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(server_time(&[]), None);
        assert_eq!(server_time(&[vec![None]]), None);
    }
}
