//! HammerDB as an external generator: the error without it, and a real run of a minute where
//! HAMMERDB_HOME is set. Without it only the unit tests read HammerDB's output, from recorded
//! transcripts.

use std::env;

use crate::prelude::*;

#[test]
fn a_missing_hammerdb_is_one_line_with_the_fix() {
    let bench = Bench::new("hammerdb_missing");
    let mut command = bench.command("prepare tproc_c --generator=hammerdb");
    let output = command.env_remove("HAMMERDB_HOME").output().unwrap();
    assert_refused(&output, &["HAMMERDB_HOME is not set: set it"]);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_real_hammerdb_builds_runs_and_removes() {
    if env::var_os("HAMMERDB_HOME").is_none() {
        eprintln!("HAMMERDB_HOME is not set: the real HammerDB is not tested");
        return;
    }
    let bench = Bench::prepared("hammerdb_real", "tproc_c --generator=hammerdb --warehouses=1");
    let refused = bench.load("run tproc_c --generator=hammerdb --time=90");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("whole minutes: give --time=120"), "{error}");
    let (result, server) = bench.recorded("run tproc_c --generator=hammerdb --threads=2 --time=60", "run");
    assert_eq!(
        (result["status"].as_str(), result["generator"].as_str()),
        (Some("complete"), Some("hammerdb"))
    );
    assert_eq!(result["operation"], "TPROC-C new order (whole mix)");
    assert_eq!(result["events"], result["details"]["nopm"]);
    for kind in ["neword", "payment", "delivery", "slev", "ostat"] {
        assert!(
            result["transactions"][kind]["latency_ms"]["p95"]
                .as_f64()
                .unwrap()
                > 0.0,
            "{kind}"
        );
    }
    let all = growth(&server, "Com_commit") + growth(&server, "Com_rollback");
    let ratio = all as f64 / result["details"]["tpm"].as_f64().unwrap();
    assert!(
        (0.9..1.1).contains(&ratio),
        "our window is not HammerDB's: {ratio}"
    );
    bench.succeed("cleanup tproc_c --generator=hammerdb");
}
