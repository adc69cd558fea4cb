//! HammerDB as a guest: what is refused without one, and a real run where HAMMERDB_HOME names one (a minute; else only recorded
//! output is read, in the unit tests).

use std::env;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;

#[test]
fn a_missing_hammerdb_is_one_line_with_the_mend() {
    let bench = Bench::new("hammerdb_missing");
    let mut command = bench.command("prepare tproc_c --generator=hammerdb");
    let output = command.env_remove("HAMMERDB_HOME").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("HAMMERDB_HOME is not set: set it") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn a_real_hammerdb_builds_runs_and_removes() {
    if env::var_os("HAMMERDB_HOME").is_none() {
        eprintln!("HAMMERDB_HOME is not set: the real HammerDB is not tested");
        return;
    }
    let bench = Bench::new("hammerdb_real");
    bench.succeed("prepare tproc_c --generator=hammerdb --warehouses=1");
    let run = bench.path("run");
    let refused = bench.load("run tproc_c --generator=hammerdb --time=90");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("whole minutes: give --time=120"), "{said}");
    bench.succeed(&format!(
        "run tproc_c --generator=hammerdb --threads=2 --time=60 --out={}",
        run.display()
    ));
    let result = json(&run.join("load/result.json"));
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
    let server = json(&run.join("load/server.json"));
    let all = growth(&server, "Com_commit") + growth(&server, "Com_rollback");
    let ratio = all as f64 / result["details"]["tpm"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&ratio), "our window is HammerDB's: {ratio}");
    bench.succeed("cleanup tproc_c --generator=hammerdb");
}
