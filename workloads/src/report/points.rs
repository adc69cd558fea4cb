//! Formats the table of several runs of one command.

use serde_json::Value as Json;

use super::number;
use super::per_second;

/// One line for each result.
pub fn points_table(results: &[Json]) -> String {
    let open = results.iter().any(|result| result["mode"] == "open");
    let mut rows = vec![header(open)];
    rows.extend(results.iter().map(|result| row(result, open)));
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn header(open: bool) -> Vec<String> {
    let mut names = vec![
        "point",
        "threads",
        "seconds",
        "events/s",
        "queries/s",
        "avg ms",
        "p95 ms",
        "p99 ms",
        "errors",
    ];
    if open {
        names.extend(["rate", "backlog"]);
    }
    names.push("");
    names.into_iter().map(str::to_owned).collect()
}

fn row(result: &Json, open: bool) -> Vec<String> {
    let seconds = number(&result["seconds"]);
    let rate = |key: &str| format!("{:.2}", per_second(number(&result[key]), seconds));
    let latency = |key: &str| match result["latency_ms"][key].as_f64() {
        Some(value) => format!("{value:.2}"),
        None => "-".to_owned(),
    };
    let mut cells = vec![
        result["point"].as_str().unwrap_or("-").to_owned(),
        result["threads"].to_string(),
        format!("{seconds:.2}"),
        rate("events"),
        rate("queries"),
        latency("mean"),
        latency("p95"),
        latency("p99"),
        result["errors"].to_string(),
    ];
    if open {
        cells.push(format!("{:.2}", number(&result["rate"])));
        cells.push(result["backlog_end"].to_string());
    }
    let mark = if result["status"] == "failed" {
        "failed"
    } else if result["rate_held"] == false {
        "rate not held"
    } else {
        ""
    };
    cells.push(mark.to_owned());
    cells
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
        let table = points_table(&[point("t8-l.i0", "complete"), point("t8-qr", "failed")]);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            ["t8-l.i0", "8", "2.00", "5.00", "10.00", "1.00", "2.00", "-", "1"]
        );
        assert_eq!((lines[2][0], lines[2].last()), ("t8-qr", Some(&"failed")));
    }
}
