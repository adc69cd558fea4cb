//! Computes the traffic of an event from the server's counters: statements prepared, executed and
//! closed, questions, bytes. The questions and bytes of the connection that reads the counters are
//! subtracted.

use serde_json::Map;
use serde_json::Value as Json;

/// Bytes that the reading itself adds to `Bytes_received` and `Bytes_sent`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReaderBytes {
    /// Sent by the reader.
    pub received: i64,
    /// Sent by the server.
    pub sent: i64,
}

type Status = Map<String, Json>;

fn number(status: &Status, name: &str) -> Option<i64> {
    status.get(name)?.as_str()?.parse().ok()
}

/// Growth of a counter; `None` if it is not in both.
pub fn growth(from: &Status, to: &Status, name: &str) -> Option<i64> {
    number(to, name)?.checked_sub(number(from, name)?)
}

impl ReaderBytes {
    /// Computes them from two consecutive readings at rest; the difference starts at the second
    /// one.
    ///
    /// Between two readings are the second question and the first answer. The size of the answer
    /// depends only on its texts.
    pub fn between(first: &Status, second: &Status) -> Option<Self> {
        let text = |status: &Status| -> usize {
            let lengths = status
                .iter()
                .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
            lengths.sum()
        };
        let longer = i64::try_from(text(second)).ok()? - i64::try_from(text(first)).ok()?;
        Some(Self {
            received: growth(first, second, "Bytes_received")?,
            sent: growth(first, second, "Bytes_sent")? + longer,
        })
    }
}

/// The lines of the summary; `None` without events or counters.
pub fn block(
    protocol: &str,
    begin: &Status,
    end: &Status,
    reader: ReaderBytes,
    events: u64,
) -> Option<String> {
    if events == 0 {
        return None;
    }
    let per_event = |count: i64| count as f64 / events as f64;
    let per_event_of = |name: &str| growth(begin, end, name).map(per_event);
    let (prepare, execute, close) = (
        per_event_of("Com_stmt_prepare")?,
        per_event_of("Com_stmt_execute")?,
        per_event_of("Com_stmt_close")?,
    );
    let questions = per_event(growth(begin, end, "Questions")? - 1);
    let received = per_event(growth(begin, end, "Bytes_received")? - reader.received);
    let sent = per_event(growth(begin, end, "Bytes_sent")? - reader.sent);
    Some(format!(
        "Protocol ({protocol}), per event by the server's counters:
    prepare / execute / close:           {prepare:.2} / {execute:.2} / {close:.2}
    questions:                           {questions:.2}
    bytes received / sent:               {received:.1} / {sent:.1}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(prepares: u32, questions: u32, received: u32, sent: u32) -> Status {
        let pairs = [
            ("Com_stmt_prepare", prepares),
            ("Com_stmt_execute", prepares),
            ("Com_stmt_close", prepares),
            ("Questions", questions),
            ("Bytes_received", received),
            ("Bytes_sent", sent),
        ];
        pairs
            .map(|(name, value)| (name.to_owned(), json!(value.to_string())))
            .into_iter()
            .collect()
    }

    #[test]
    fn the_reader_is_subtracted() {
        let first = status(0, 1, 500, 9000);
        let second = status(0, 2, 523, 9900);
        let reader = ReaderBytes::between(&first, &second).unwrap();
        assert_eq!(
            reader,
            ReaderBytes {
                received: 23,
                sent: 900
            }
        );
        let end = status(10, 13, 523 + 23 + 680, 9900 + 900 + 2580);
        let text = block("ps_uncached", &second, &end, reader, 10).unwrap();
        for part in ["1.00 / 1.00 / 1.00", " 1.00\n", "68.0 / 258.0"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(block("ps", &second, &end, reader, 0).is_none());
    }
}
