//! Formats the table of several runs of one command.

use serde_json::Value as Json;

use super::number;
use super::per_second;

/// A column: its head, whether only an open loop has it, and the cell of a result.
type Column = (&'static str, bool, fn(&Json) -> String);

const COLUMNS: [Column; 12] = [
    ("point", false, |result| {
        result["point"].as_str().unwrap_or("-").to_owned()
    }),
    ("threads", false, |result| result["threads"].to_string()),
    ("seconds", false, |result| {
        format!("{:.2}", number(&result["seconds"]))
    }),
    ("events/s", false, |result| rate(result, "events")),
    ("queries/s", false, |result| rate(result, "queries")),
    ("avg ms", false, |result| latency(result, "mean")),
    ("p95 ms", false, |result| latency(result, "p95")),
    ("p99 ms", false, |result| latency(result, "p99")),
    ("errors", false, |result| result["errors"].to_string()),
    ("rate", true, |result| format!("{:.2}", number(&result["rate"]))),
    ("backlog", true, |result| result["backlog_end"].to_string()),
    ("", false, |result| mark(result).to_owned()),
];

fn rate(result: &Json, key: &str) -> String {
    let seconds = number(&result["seconds"]);
    format!("{:.2}", per_second(number(&result[key]), seconds))
}

fn latency(result: &Json, key: &str) -> String {
    let value = result["latency_ms"][key].as_f64();
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn mark(result: &Json) -> &'static str {
    match (result["status"].as_str(), result["rate_held"].as_bool()) {
        (Some("failed"), _) => "failed",
        (_, Some(false)) => "rate not held",
        _ => "",
    }
}

/// One line for each result.
pub fn points_table(results: &[Json]) -> String {
    let open = results.iter().any(|result| result["mode"] == "open");
    let mut lines = vec![String::new(); results.len() + 1];
    for (number, (head, _, cell)) in COLUMNS
        .iter()
        .filter(|(_, of_open, _)| open || !of_open)
        .enumerate()
    {
        let cells: Vec<String> = [(*head).to_owned()]
            .into_iter()
            .chain(results.iter().map(cell))
            .collect();
        let width = cells.iter().map(String::len).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(cells) {
            *line += &match number {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_point_has_a_row_with_its_status() {
        let point = |name: &str, status: &str| {
            json!({"point": name, "threads": 8, "seconds": 2.0, "events": 10, "queries": 20, "errors": 1, "mode": "closed",
                "latency_ms": {"mean": 1.0, "p95": 2.0, "p99": null}, "status": status})
        };
        let table = points_table(&[point("t8-ctx5", "complete"), point("t8-qr", "failed")]);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            ["t8-ctx5", "8", "2.00", "5.00", "10.00", "1.00", "2.00", "-", "1"]
        );
        assert_eq!((lines[2][0], lines[2].last()), ("t8-qr", Some(&"failed")));
    }
}
