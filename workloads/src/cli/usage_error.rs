//! Clap's errors, which take several lines, as one line with the nearest right name.

use anyhow::anyhow;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use super::names;

/// Options of sysbench that this tool does not have, and what to use.
const OF_SYSBENCH: [(&str, &str); 14] = [
    ("--num-threads", "use --threads"),
    ("--max-requests", "use --events"),
    ("--max-time", "use --time"),
    ("--tx-rate", "use --rate"),
    (
        "--report-checkpoints",
        "the recording of --out holds every second; --warmup-time leaves out the beginning",
    ),
    (
        "--thread-stack-size",
        "threads have 256 kB, of which only what they use takes memory",
    ),
    (
        "--config-file",
        "give options on the command line, and the account by --defaults-file",
    ),
    ("--debug", "use --report-interval=1 and the server's error log"),
    ("--validate", "use the verb `check`"),
    ("--db-debug", "use the server's general log"),
    ("--mysql-debug", "use the server's general log"),
    ("--mysql-dry-run", "leave it out: every run is on a server"),
    ("--pgsql-variant", "there is no driver but mysql"),
    (
        "--luajit-cmd",
        "there is no Lua: workloads are listed by `loadprint-load list`",
    ),
];

/// Clap's error as one line with the nearest name.
pub fn one_line(error: &clap::Error) -> anyhow::Error {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        // Clap sorts suggestions by likeness, the best one last.
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
            anyhow!(
                "unknown verb or workload `{given}`: {}",
                nearest(
                    suggestion,
                    "`loadprint-load list` shows the workloads, `loadprint-load --help` the verbs"
                )
            )
        }
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg).unwrap_or_default();
            let suggestion = text(ContextKind::SuggestedArg);
            let name = given.split('=').next();
            if let Some((_, instead)) = OF_SYSBENCH.iter().find(|(of, _)| Some(*of) == name) {
                return anyhow!("`{given}` of sysbench is not taken: {instead}");
            }
            anyhow!(
                "unknown option `{given}`: {}",
                nearest(suggestion, "`loadprint-load help WORKLOAD` shows the options")
            )
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            anyhow!(
                "a verb or a workload is missing: `loadprint-load --help`; the workloads are {}",
                names()
            )
        }
        _ => {
            let whole = error.to_string();
            let first = whole.lines().next().unwrap_or_default();
            anyhow!("{}", first.trim_start_matches("error: "))
        }
    }
}
