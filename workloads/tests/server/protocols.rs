//! Every protocol mode against what the server counted: prepares, executes, closes and questions, to the last one.

use std::path::Path;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;

/// What the server counted for one event of a run.
struct PerEvent {
    prepares: u64,
    executes: u64,
    closes: u64,
    questions: u64,
    queries: u64,
}

fn point_selects(bench: &Bench, run: &Path, options: &str) -> (serde_json::Value, serde_json::Value) {
    bench.succeed(&format!(
        "run oltp_point_select --table-size=1000 --threads=2 --warmup-time=1 --events=3000 {options} --out={}",
        run.display()
    ));
    (
        json(&run.join("load/result.json")),
        json(&run.join("load/server.json")),
    )
}

#[test]
fn each_protocol_costs_the_calls_that_it_says() {
    let bench = Bench::new("protocols");
    bench.succeed("prepare oltp_point_select --table-size=1000");
    let text = PerEvent {
        prepares: 0,
        executes: 0,
        closes: 0,
        questions: 1,
        queries: 1,
    };
    let ps = PerEvent { executes: 1, ..text };
    let uncached = PerEvent {
        prepares: 1,
        executes: 1,
        closes: 1,
        questions: 1,
        queries: 3,
    };
    // The server counts the text EXECUTE as it counts the command; SET is a question of its own.
    let sql = PerEvent {
        executes: 1,
        questions: 2,
        queries: 2,
        ..text
    };
    for (protocol, per_event) in [
        ("text", &text),
        ("emulated", &text),
        ("ps", &ps),
        ("ps_cached", &ps),
        ("ps_uncached", &uncached),
        ("sql_prepare", &sql),
    ] {
        let (result, server) =
            point_selects(&bench, &bench.path(protocol), &format!("--protocol={protocol}"));
        assert_eq!(result["protocol"], protocol);
        assert_eq!(result["events"], 3000);
        assert_eq!(result["reads"], 3000, "{protocol}");
        for (key, per_event) in [
            ("prepares", per_event.prepares),
            ("executes", per_event.executes),
            ("closes", per_event.closes),
        ] {
            assert_eq!(
                result["protocol_calls"][key],
                per_event * 3000,
                "{key}, {protocol}"
            );
        }
        for (counter, expected) in [
            ("Com_stmt_prepare", per_event.prepares * 3000),
            ("Com_stmt_execute", per_event.executes * 3000),
            ("Com_stmt_close", per_event.closes * 3000),
            ("Questions", per_event.questions * 3000 + 1),
            ("Queries", per_event.queries * 3000 + 1),
            ("Com_select", 3000),
        ] {
            assert_eq!(growth(&server, counter), expected, "{counter}, {protocol}");
        }
    }
}
