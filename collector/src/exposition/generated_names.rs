//! Generates the names of metrics that node_exporter does not have:
//! `loadprint_<probe>_<column>_<unit>[_total]`.

use loadprint_recording::schema::Column;
use loadprint_recording::schema::Kind;
use loadprint_recording::schema::Unit;

use super::unit;

/// The metric name of a column, or of a declared metric of an open key set; without `_bucket` for a
/// histogram.
pub fn name(probe: &str, column: &Column) -> String {
    let name = snake(&column.name);
    let stem = stem(&name, column.unit);
    let ends_in =
        |word: &str| stem == word || stem.strip_suffix(word).is_some_and(|rest| rest.ends_with('_'));
    // Prometheus reserves these endings.
    let endings: &[&str] = match column.kind {
        Kind::Counter => &["total", "count"],
        Kind::Histogram => &["buckets", "bucket", "count", "sum"],
        Kind::Gauge | Kind::Info => &["total", "count", "sum", "bucket", "info"],
    };
    let ending = endings
        .iter()
        .find(|word| ends_in(word))
        .map_or(0, |word| word.len());
    let stem = stem[..stem.len() - ending].trim_end_matches('_');
    let mut whole = format!("loadprint_{}", snake(probe));
    let (base, _) = unit::words(column.unit);
    for part in [stem, base] {
        // Without repeating the last word of the table's name: loadprint_ebpf_block_size_bytes.
        if !part.is_empty() && !whole.ends_with(&format!("_{part}")) {
            whole.push('_');
            whole.push_str(part);
        }
    }
    if column.kind == Kind::Counter {
        whole.push_str("_total");
    }
    whole
}

/// A column's name without its unit: the exported value has the base unit.
fn stem(name: &str, unit: Unit) -> &str {
    let (_, endings) = unit::words(unit);
    for ending in endings {
        if name == *ending {
            return "";
        }
        if let Some(stem) = name.strip_suffix(ending).and_then(|stem| stem.strip_suffix('_')) {
            return stem;
        }
    }
    name
}

/// Converts to lower-case letters, digits and single underscores.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            snake.push(letter.to_ascii_lowercase());
        } else if !snake.ends_with('_') {
            snake.push('_');
        }
    }
    snake.trim_matches('_').to_owned()
}

/// The column with the sum of a histogram's values: `sum_ns` for `buckets`, `wait_sum_ns` for
/// `wait_buckets`.
pub fn sum_of(buckets: &Column, columns: &[Column]) -> Option<usize> {
    let (_, endings) = unit::words(buckets.unit);
    let prefix = buckets.name.strip_suffix("buckets").unwrap_or("");
    columns.iter().position(|column| {
        column.kind == Kind::Counter
            && column.unit == buckets.unit
            && column.name.strip_prefix(prefix).is_some_and(|rest| {
                rest == "sum" || endings.iter().any(|end| rest.strip_prefix("sum_") == Some(end))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_generated_from_declarations() {
        let counter = |name, unit| Column::counter(name, unit, "help", "source");
        let gauge = |name, unit| Column::gauge(name, unit, "help", "source");
        assert_eq!(
            name("process", &counter("utime", Unit::Tick)),
            "loadprint_process_utime_seconds_total"
        );
        assert_eq!(
            name("pressure", &counter("total_us", Unit::Microsecond)),
            "loadprint_pressure_seconds_total"
        );
        assert_eq!(
            name("softirqs", &counter("count", Unit::One)),
            "loadprint_softirqs_total"
        );
        assert_eq!(
            name("process", &gauge("rss", Unit::Page)),
            "loadprint_process_rss_bytes"
        );
        assert_eq!(
            name("nic", &counter("rx_bytes", Unit::Byte)),
            "loadprint_nic_rx_bytes_total"
        );
        assert_eq!(
            name("mysql", &gauge("Threads_running", Unit::One)),
            "loadprint_mysql_threads_running"
        );
        assert_eq!(
            name("energy", &counter("energy_uj", Unit::Microjoule)),
            "loadprint_energy_joules_total"
        );
        let buckets = |name, unit| Column::buckets(name, unit, "help", "source");
        assert_eq!(
            name("ebpf_irq", &buckets("buckets", Unit::Nanosecond)),
            "loadprint_ebpf_irq_seconds"
        );
        assert_eq!(
            name("ebpf_tcp", &buckets("rtt_buckets", Unit::Microsecond)),
            "loadprint_ebpf_tcp_rtt_seconds"
        );
        let columns = [
            counter("sum_ns", Unit::Nanosecond),
            counter("rtt_sum_us", Unit::Microsecond),
        ];
        assert_eq!(sum_of(&buckets("buckets", Unit::Nanosecond), &columns), Some(0));
        assert_eq!(
            sum_of(&buckets("rtt_buckets", Unit::Microsecond), &columns),
            Some(1)
        );
        assert_eq!(
            sum_of(&buckets("other_buckets", Unit::Microsecond), &columns),
            None
        );
    }
}
