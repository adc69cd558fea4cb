//! The verbs of the command line.

/// What the verbs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Makes tables and rows.
    Prepare,
    /// Reads the data into the server's memory.
    Warmup,
    /// Runs the load.
    Run,
    /// Checks the data by the workload's rules.
    Check,
    /// Removes what prepare made.
    Cleanup,
}

/// Each verb with its name and its line of help.
pub const VERBS: [(Verb, &str, &str); 5] = [
    (
        Verb::Prepare,
        "prepare",
        "Create the workload's database, tables and rows",
    ),
    (
        Verb::Warmup,
        "warmup",
        "Read the workload's data into the server's memory",
    ),
    (Verb::Run, "run", "Run the workload and print what it did"),
    (
        Verb::Check,
        "check",
        "Check the data by the workload's own consistency rules; exit status 1 if one is broken",
    ),
    (Verb::Cleanup, "cleanup", "Drop the workload's tables"),
];
