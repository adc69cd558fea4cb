//! Reduces clap's errors of several lines to one line with the most similar valid name.

use anyhow::anyhow;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

/// Options of sysbench that are not supported, with their replacement.
const OF_SYSBENCH: [(&str, &str); 14] = [
    ("--num-threads", "use --threads"),
    ("--max-requests", "use --events"),
    ("--max-time", "use --time"),
    ("--tx-rate", "use --rate"),
    (
        "--report-checkpoints",
        "--out records every second, and --warmup-time excludes the start",
    ),
    ("--thread-stack-size", "each thread has a stack of 256 kB"),
    (
        "--config-file",
        "give options on the command line and the account in --defaults-file",
    ),
    ("--debug", "use --report-interval=1 and the server's error log"),
    ("--validate", "use the verb `check`"),
    ("--db-debug", "use the server's general log"),
    ("--mysql-debug", "use the server's general log"),
    ("--mysql-dry-run", "every run needs a server"),
    ("--pgsql-variant", "mysql is the only driver"),
    (
        "--luajit-cmd",
        "workloads are not in Lua; `loadprint-load list` prints them",
    ),
];

/// Converts an error of clap; `workloads` lists the valid names.
pub fn one_line(error: &clap::Error, workloads: &str) -> anyhow::Error {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        // Clap sorts suggestions by similarity, the best one last.
        Some(ContextValue::Strings(texts)) => texts.last().cloned(),
        _ => None,
    };
    let nearest = |suggestion: Option<String>, otherwise: &str| match suggestion {
        Some(name) => format!("did you mean `{name}`?"),
        None => otherwise.to_owned(),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let suggestion = text(ContextKind::SuggestedSubcommand);
            if workloads.split(", ").any(|workload| workload == given) {
                return anyhow!("the verb comes first: `loadprint-load run {given}`");
            }
            anyhow!(
                "unknown verb or workload `{given}`: {}",
                nearest(
                    suggestion,
                    "`loadprint-load list` prints the workloads, `loadprint-load --help` the verbs"
                )
            )
        }
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg).unwrap_or_default();
            let suggestion = text(ContextKind::SuggestedArg);
            let name = given.split('=').next();
            if let Some((_, instead)) = OF_SYSBENCH.iter().find(|(of, _)| Some(*of) == name) {
                return anyhow!("sysbench's option `{given}` is not supported: {instead}");
            }
            anyhow!(
                "unknown option `{given}`: {}",
                nearest(suggestion, "`loadprint-load help WORKLOAD` prints the options")
            )
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            anyhow!(
                "the verb or the workload is missing: see `loadprint-load --help`; the workloads are {workloads}"
            )
        }
        _ => {
            let whole = error.to_string();
            let first = whole.lines().next().unwrap_or_default();
            anyhow!("{}", first.trim_start_matches("error: "))
        }
    }
}
