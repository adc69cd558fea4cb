//! Declares the options of the workload `command`.

use crate::options::OptionSpec;

/// The options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::text("command", "COMMAND")
        .help("run: the program and its arguments; {threads}, {seconds}, {warmup}, {rate}, {defaults_file}, {host}, {port}, {socket} and {database} are replaced"),
    OptionSpec::text("prepare-command", "COMMAND")
        .help("prepare: as --command [default: nothing is prepared]"),
    OptionSpec::text("warmup-command", "COMMAND")
        .help("warmup: as --command"),
    OptionSpec::text("cleanup-command", "COMMAND")
        .help("cleanup: as --command"),
    OptionSpec::flag("shell")
        .default("off")
        .help("on: run the commands with /bin/sh; off: split them as a shell does and run them directly"),
    OptionSpec::text("operation", "TEXT")
        .help("description of an operation, for the table"),
    OptionSpec::text("operations-regex", "REGEX")
        .help("number of operations in the output: group `operations`, else the first group; group `seconds` is their time"),
    OptionSpec::choice("operations-of", &["last", "sum"])
        .default("last")
        .help("if several lines match --operations-regex: use the last one, or their sum"),
    OptionSpec::text("operations-json", "JSONPATH")
        .help("number of operations in the last line of output that is a JSON object, for example $.operations"),
    OptionSpec::text("seconds-json", "JSONPATH")
        .help("their time in seconds, in the same object"),
    OptionSpec::choice("operations-from", &["output", "questions", "commits", "intervals"])
        .default("output")
        .help("output: as above; questions, commits: growth of the server's counters in the window; intervals: sum of the lines of --interval-regex in the window"),
    OptionSpec::text("measure-begin-regex", "REGEX")
        .help("the measured window starts with the first matching line [default: after --warmup-time]"),
    OptionSpec::text("measure-end-regex", "REGEX")
        .help("the measured window ends with the next matching line [default: after --time, or when the program exits]"),
    OptionSpec::text("interval-regex", "REGEX")
        .help("operations of an interval: group `operations`, else the first group; lines outside the window are ignored"),
    OptionSpec::duration("grace")
        .default("30")
        .help("kill the program when it has not exited for this time after --warmup-time and --time"),
];

/// The option of external generators.
pub const GENERATOR: &[OptionSpec] = &[OptionSpec::choice("generator", &["command"])
    .default("command")
    .help("the only generator of this workload")];
