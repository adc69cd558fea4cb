//! Checks the exported names of all probes: each is a valid Prometheus name.

use std::collections::HashMap;

use loadprint_probes::PROBES;
use loadprint_recording::schema::Kind as Declared;
use loadprint_recording::schema::Shape;

use super::families::Kind;
use super::generated_names;
use super::node_exporter;

/// The generated name of each column, its kind, and `probe.column`.
fn declared_names() -> Vec<(String, Declared, String)> {
    let mut names = vec![];
    for entry in PROBES {
        let columns = match entry.schema.shape {
            Shape::Metrics => &entry.schema.metrics,
            Shape::Table | Shape::Histogram => &entry.schema.columns,
        };
        for column in columns.iter().filter(|column| column.kind != Declared::Info) {
            let origin = format!("{}.{}", entry.name, column.name);
            if entry.schema.shape == Shape::Metrics
                && node_exporter::metric(entry.name, &column.name, true).is_some()
            {
                continue;
            }
            let is_sum = columns
                .iter()
                .filter(|buckets| buckets.kind == Declared::Histogram)
                .filter_map(|buckets| generated_names::sum_of(buckets, columns))
                .any(|sum| columns[sum].name == column.name);
            if !is_sum {
                names.push((generated_names::name(entry.name, column), column.kind, origin));
            }
        }
    }
    names
}

/// `throttled_us` and `throttled_ns` of one probe: a kernel has one of them.
fn is_same_quantity_in_another_unit(one: &str, other: &str) -> bool {
    let stem = |origin: &str| {
        origin
            .rsplit_once('_')
            .map(|(stem, unit)| (stem.to_owned(), unit.to_owned()))
    };
    let time = |unit: &str| matches!(unit, "ns" | "us" | "ms" | "s");
    match (stem(one), stem(other)) {
        (Some((one, first)), Some((other, second))) => one == other && time(&first) && time(&second),
        _ => false,
    }
}

#[test]
fn every_generated_name_is_valid_and_unique() {
    let mut seen: HashMap<String, String> = HashMap::new();
    for (name, kind, origin) in declared_names() {
        let stem = name.strip_suffix("_total").unwrap_or(&name);
        assert!(
            stem.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{origin} is exported as `{name}`, which is not a valid metric name: rename the column"
        );
        assert_eq!(
            name.ends_with("_total"),
            kind == Declared::Counter,
            "{origin} is exported as `{name}`: only counters end in _total; declare it a counter, or rename the column"
        );
        for reserved in ["_count", "_sum", "_bucket", "_info", "_created", "_total"] {
            assert!(
                !stem.ends_with(reserved),
                "{origin} is exported as `{name}`: `{reserved}` is reserved; rename the column"
            );
        }
        if let Some(other) = seen.insert(stem.to_owned(), origin.clone())
            && !is_same_quantity_in_another_unit(&origin, &other)
        {
            panic!("{origin} and {other} are both exported as `{stem}`: rename one of the two columns");
        }
    }
}

#[test]
fn every_entity_column_is_a_valid_label() {
    for entry in PROBES.iter().filter(|entry| entry.schema.shape != Shape::Metrics) {
        for name in entry.schema.entity.iter() {
            let is_label = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(
                is_label && !name.starts_with("__") && !matches!(&**name, "le" | "quantile"),
                "{}: the entity column `{name}` is not a valid label: use lower-case letters and _, but not le or quantile",
                entry.name
            );
        }
    }
}

#[test]
fn open_key_sets_have_node_exporters_names() {
    let name = |probe, key| {
        node_exporter::metric(probe, key, false)
            .flatten()
            .map_or(String::new(), |metric| metric.name)
    };
    assert_eq!(name("memory", "Active(anon)"), "node_memory_Active_anon_bytes");
    assert_eq!(name("memory", "HugePages_Free"), "node_memory_HugePages_Free");
    assert_eq!(name("vmstat", "pgmajfault"), "node_vmstat_pgmajfault");
    assert_eq!(name("tcp", "Tcp.RetransSegs"), "node_netstat_Tcp_RetransSegs");
    assert_eq!(name("tcp", "sockstat.TCP.tw"), "node_sockstat_TCP_tw");
    assert_eq!(name("vmstat", "nr_zone_inactive_anon"), "");
    assert_eq!(
        node_exporter::metric("vmstat", "pgfault", false)
            .flatten()
            .map(|metric| metric.kind),
        Some(Kind::Unknown)
    );
    assert_eq!(node_exporter::metric("mysql", "Questions", true), None);
}
