//! Declares the options of the workload `command`.

use crate::options::Kind;
use crate::options::OptionSpec;

/// The options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "command",
        Kind::Text("WORDS"),
        None,
        "run: the program and its words; {threads}, {seconds}, {warmup}, {defaults_file}, {host}, {port}, {socket}, {database} are replaced",
    ),
    OptionSpec::new(
        "prepare-command",
        Kind::Text("WORDS"),
        None,
        "prepare: the same; without it nothing is prepared",
    ),
    OptionSpec::new("warmup-command", Kind::Text("WORDS"), None, "warmup: the same"),
    OptionSpec::new("cleanup-command", Kind::Text("WORDS"), None, "cleanup: the same"),
    OptionSpec::new(
        "shell",
        Kind::Flag,
        Some("off"),
        "on: /bin/sh runs the words; off: they are split as a shell would, and no shell is run",
    ),
    OptionSpec::new(
        "operation",
        Kind::Text("WORDS"),
        None,
        "what one operation is, for the table",
    ),
    OptionSpec::new(
        "operations-regex",
        Kind::Text("REGEX"),
        None,
        "operations from its output: group `operations` or the first one; a group `seconds` gives their time",
    ),
    OptionSpec::new(
        "operations-of",
        Kind::Choice(&["last", "sum"]),
        Some("last"),
        "of several lines that match --operations-regex: the last one, or their sum",
    ),
    OptionSpec::new(
        "operations-json",
        Kind::Text("JSONPATH"),
        None,
        "operations from the last line of its output that is a JSON object, such as $.operations",
    ),
    OptionSpec::new(
        "seconds-json",
        Kind::Text("JSONPATH"),
        None,
        "their time, from the same object",
    ),
    OptionSpec::new(
        "operations-from",
        Kind::Choice(&["output", "questions", "commits", "intervals"]),
        Some("output"),
        "output: as above; questions, commits: the server's counters over the window; intervals: the lines of --interval-regex in the window",
    ),
    OptionSpec::new(
        "measure-begin-regex",
        Kind::Text("REGEX"),
        None,
        "the window begins with the first line that matches; else after --warmup-time",
    ),
    OptionSpec::new(
        "measure-end-regex",
        Kind::Text("REGEX"),
        None,
        "the window ends with the first line that matches after that; else after --time, or with the program",
    ),
    OptionSpec::new(
        "interval-regex",
        Kind::Text("REGEX"),
        None,
        "operations of a second: group `operations` or the first one; lines outside of the window do not count",
    ),
    OptionSpec::new(
        "grace",
        Kind::Duration,
        Some("30"),
        "how long the program may take beyond --warmup-time and --time before it is ended",
    ),
    OptionSpec::new(
        "generator",
        Kind::Choice(&["command"]),
        Some("command"),
        "a command is its own generator",
    ),
];
