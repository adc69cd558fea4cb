//! Declares the options of the workload `command`.

use serde::Deserialize;

use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::options;

options! {
    /// The options.
    pub OPTIONS, Options;
    command: Option<String> = Text("COMMAND")
        .help("run: the program and its arguments; {threads}, {seconds}, {warmup}, {rate}, {defaults_file}, {host}, {port}, {socket}, {user} and {database} are replaced"),
    prepare_command: Option<String> = Text("COMMAND")
        .help("prepare: as --command [default: nothing is prepared]"),
    warmup_command: Option<String> = Text("COMMAND")
        .help("warmup: as --command"),
    cleanup_command: Option<String> = Text("COMMAND")
        .help("cleanup: as --command"),
    shell: bool = Flag
        .default("off")
        .help("on: run the commands with /bin/sh; off: split them as a shell does and run them directly"),
    operation: Option<String> = Text("TEXT")
        .help("description of an operation, for the table"),
    operations_regex: Option<String> = Text("REGEX")
        .help("number of operations in the output: group `operations`, else the first group; group `seconds` is their time"),
    operations_of: Which = Choice(&["last", "sum"])
        .default("last")
        .help("if several lines match --operations-regex: use the last one, or their sum"),
    operations_json: Option<String> = Text("JSONPATH")
        .help("number of operations in the last line of output that is a JSON object, for example $.operations"),
    seconds_json: Option<String> = Text("JSONPATH")
        .help("their time in seconds, in the same object"),
    operations_from: Source = Choice(&["output", "questions", "commits", "intervals"])
        .default("output")
        .help("output: as above; questions, commits: growth of the server's counters in the window; intervals: sum of the lines of --interval-regex in the window"),
    measure_begin_regex: Option<String> = Text("REGEX")
        .help("the measured window starts with the first matching line [default: after --warmup-time]"),
    measure_end_regex: Option<String> = Text("REGEX")
        .help("the measured window ends with the next matching line [default: after --time, or when the program exits]"),
    interval_regex: Option<String> = Text("REGEX")
        .help("operations of an interval: group `operations`, else the first group; lines outside the window are ignored"),
    grace: f64 = Duration
        .default("30")
        .help("kill the program when it has not exited for this time after --warmup-time and --time"),
}

/// `--operations-of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    Last,
    Sum,
}

/// `--operations-from`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    #[default]
    Output,
    Questions,
    Commits,
    Intervals,
}

/// The option of external generators.
pub const GENERATOR: &[OptionSpec] = &[OptionSpec::new("generator", Kind::Choice(&["command"]))
    .default("command")
    .help("the only generator of this workload")];
