//! Clap's errors, which take several lines, as one line with the nearest right name.

use anyhow::anyhow;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use super::names;

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
