//! Declares the options of external generators.

use crate::options::Kind;
use crate::options::OptionSpec;

const HELP: &str = "native, or an external program in its place";

const NATIVE: &[OptionSpec] = &[OptionSpec::new(
    "generator",
    Kind::Choice(&["native"]),
    Some("native"),
    "native is the only generator of this workload",
)];

const SYSBENCH: &[OptionSpec] = &[
    OptionSpec::new(
        "generator",
        Kind::Choice(&["native", "sysbench"]),
        Some("native"),
        HELP,
    ),
    OptionSpec::new(
        "sysbench-path",
        Kind::Text("FILE"),
        None,
        "sysbench: path of the program [default: sysbench in PATH]",
    ),
    OptionSpec::new(
        "sysbench-scripts",
        Kind::Text("DIR"),
        None,
        "sysbench: directory of its Lua scripts [default: its own]",
    ),
];

const HAMMERDB: &[OptionSpec] = &[
    OptionSpec::new(
        "generator",
        Kind::Choice(&["native", "hammerdb"]),
        Some("native"),
        "native, or HammerDB 4.9 to 6 in the directory HAMMERDB_HOME",
    ),
    OptionSpec::new(
        "hammerdb-timeprofile",
        Kind::Flag,
        Some("on"),
        "hammerdb: time its transactions, for latencies per type",
    ),
];

/// The options of external generators for a workload.
pub fn options_of(workload: &str) -> &'static [OptionSpec] {
    match workload {
        name if super::sysbench::SCRIPTS.contains(&name) => SYSBENCH,
        "tproc_c" => HAMMERDB,
        "command" => &[],
        _ => NATIVE,
    }
}
