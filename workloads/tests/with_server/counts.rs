//! The files of a run directory.

use crate::prelude::*;
use serde_json::Value;

#[test]
fn a_standalone_run_writes_a_complete_directory_and_never_overwrites_it() {
    let bench = Bench::prepared("directory", "oltp_read_write --table-size=1000");
    let run = bench.path("run");
    let words = format!(
        "run oltp_point_select --table-size=1000 --threads=2 --time=2 --rand-seed=9 --out={}",
        run.display()
    );
    let text = bench.succeed(&words);
    assert!(
        text.lines()
            .any(|line| line.starts_with("[ ") && line.contains("s ] thds: 2 tps: ")),
        "{text}"
    );

    let about = json(&run.join("run.json"));
    assert_eq!(
        (about["status"].as_str(), about["seed"].as_u64()),
        (Some("complete"), Some(9))
    );
    let files = json(&run.join("manifest.json"))["files"].clone();
    for name in [
        "phases.jsonl",
        "result.json",
        "server.json",
        "throughput.parquet",
        "latency.parquet",
    ] {
        assert!(
            files[format!("load/{name}")]["bytes"].as_u64() > Some(0),
            "{name}: {files}"
        );
    }
    let again = bench.load(&words);
    assert_eq!(again.status.code(), Some(2));
    assert!(only_line(&again).contains("new directory"));
}

#[test]
fn the_latencies_of_all_intervals_are_those_of_the_result() {
    let bench = Bench::prepared("latencies", "oltp_read_write --table-size=1000");
    let run = bench.path("run");
    let (result, _) = bench.recorded(
        "run oltp_read_write --table-size=1000 --threads=4 --time=3",
        "run",
    );
    let actual = latencies::read(&run);
    let expected = result["transactions"].as_object().unwrap();
    assert!(actual.keys().eq(expected.keys()), "{expected:?}");
    let ends = latencies::interval_ends(&run);
    for (kind, (histogram, of_type)) in &actual {
        assert_eq!(Some(histogram.len()), expected[kind]["count"].as_u64(), "{kind}");
        let known = &expected[kind]["latency_ms"];
        for (name, share) in [
            ("p50", 0.5),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p999", 0.999),
            ("max", 1.0),
        ] {
            assert_eq!(
                histogram.value_at_quantile(share) as f64 / 1e6,
                known[name],
                "{name} of {kind}"
            );
        }
        assert_eq!(histogram.min() as f64 / 1e6, known["min"]);
        assert_eq!(of_type, &ends, "the stamps of throughput.parquet");
    }
}

#[test]
fn an_existing_run_json_is_kept_and_json_is_printed() {
    let bench = Bench::prepared("orchestrated", "oltp_read_write --table-size=1000");
    let run = bench.path("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("run.json"), "{}").unwrap();
    let words = format!(
        "run oltp_point_select --table-size=1000 --time=1 --format=json --out={}",
        run.display()
    );
    let printed: Value = serde_json::from_str(&bench.succeed(&words)).unwrap();
    assert_eq!(printed, json(&run.join("load/result.json")));
    assert_eq!(json(&run.join("run.json")), serde_json::json!({}));
    assert!(!run.join("manifest.json").exists());
}
