//! Lists the verbs of the command line.

/// A verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Create tables and rows.
    Prepare,
    /// Read the data into the buffer pool.
    Warmup,
    /// Run the load.
    Run,
    /// Check the data.
    Check,
    /// Drop the tables.
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
        "Read the workload's data into the server's buffer pool",
    ),
    (
        Verb::Run,
        "run",
        "Run the workload and print its throughput and latency",
    ),
    (
        Verb::Check,
        "check",
        "Check the workload's consistency rules; exit status 1 if a rule is broken",
    ),
    (Verb::Cleanup, "cleanup", "Drop the workload's tables"),
];
