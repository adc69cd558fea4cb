//! Declares the options of the workload `command`.

use crate::options::Kind;
use crate::options::OptionSpec;

/// The options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "command",
        Kind::Text("COMMAND"),
        None,
        "run: the program and its arguments; {threads}, {seconds}, {warmup}, {rate}, {defaults_file}, {host}, {port}, {socket} and {database} are replaced",
    ),
    OptionSpec::new(
        "prepare-command",
        Kind::Text("COMMAND"),
        None,
        "prepare: as --command [default: nothing is prepared]",
    ),
    OptionSpec::new(
        "warmup-command",
        Kind::Text("COMMAND"),
        None,
        "warmup: as --command",
    ),
    OptionSpec::new(
        "cleanup-command",
        Kind::Text("COMMAND"),
        None,
        "cleanup: as --command",
    ),
    OptionSpec::new(
        "shell",
        Kind::Flag,
        Some("off"),
        "on: run the commands with /bin/sh; off: split them as a shell does and run them directly",
    ),
    OptionSpec::new(
        "operation",
        Kind::Text("TEXT"),
        None,
        "description of an operation, for the table",
    ),
    OptionSpec::new(
        "operations-regex",
        Kind::Text("REGEX"),
        None,
        "number of operations in the output: group `operations`, else the first group; group `seconds` is their time",
    ),
    OptionSpec::new(
        "operations-of",
        Kind::Choice(&["last", "sum"]),
        Some("last"),
        "if several lines match --operations-regex: use the last one, or their sum",
    ),
    OptionSpec::new(
        "operations-json",
        Kind::Text("JSONPATH"),
        None,
        "number of operations in the last line of output that is a JSON object, for example $.operations",
    ),
    OptionSpec::new(
        "seconds-json",
        Kind::Text("JSONPATH"),
        None,
        "their time in seconds, in the same object",
    ),
    OptionSpec::new(
        "operations-from",
        Kind::Choice(&["output", "questions", "commits", "intervals"]),
        Some("output"),
        "output: as above; questions, commits: growth of the server's counters in the window; intervals: sum of the lines of --interval-regex in the window",
    ),
    OptionSpec::new(
        "measure-begin-regex",
        Kind::Text("REGEX"),
        None,
        "the measured window starts with the first matching line [default: after --warmup-time]",
    ),
    OptionSpec::new(
        "measure-end-regex",
        Kind::Text("REGEX"),
        None,
        "the measured window ends with the next matching line [default: after --time, or when the program exits]",
    ),
    OptionSpec::new(
        "interval-regex",
        Kind::Text("REGEX"),
        None,
        "operations of an interval: group `operations`, else the first group; lines outside the window are ignored",
    ),
    OptionSpec::new(
        "grace",
        Kind::Duration,
        Some("30"),
        "kill the program when it has not exited for this time after --warmup-time and --time",
    ),
];

/// The option of external generators.
pub const GENERATOR: &[OptionSpec] = &[OptionSpec::new(
    "generator",
    Kind::Choice(&["command"]),
    Some("command"),
    "the only generator of this workload",
)];
