//! Several runs of one command: a run directory each, one table, one JSON array.

use serde_json::Value;

use crate::prelude::*;

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_list_of_threads_gives_one_run_per_number() {
    let bench = Bench::prepared("sweep", "oltp_read_write --table-size=1000");
    let out = bench.path("sweep");
    let words = format!(
        "run oltp_point_select --table-size=1000 --threads=1,3 --events=300 --format=json --out={}",
        out.display()
    );
    let output = bench.load(&words);
    let printed = printed_json(&output);
    let table = String::from_utf8_lossy(&output.stderr);
    for (position, (name, threads)) in [("t1", 1), ("t3", 3)].into_iter().enumerate() {
        let result = json(&out.join(name).join("load/result.json"));
        assert_eq!(printed[position], result);
        assert_eq!(
            (&result["threads"], &result["events"]),
            (&Value::from(threads), &Value::from(300))
        );
        assert_eq!(result["point"], name);
        assert_eq!(result["options"]["threads"], threads);
        assert_eq!(
            json(&out.join(name).join("run.json"))["status"],
            "complete",
            "{name}"
        );
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))
            .unwrap();
        assert_eq!(row.split_whitespace().nth(1), Some(threads.to_string().as_str()));
    }
    assert!(!out.join("load").exists());
    // The second point has a result: refused before the first one runs.
    std::fs::remove_dir_all(out.join("t1")).unwrap();
    bench.refused(&words, &["new directory"]);
    assert!(!out.join("t1").exists());
}
