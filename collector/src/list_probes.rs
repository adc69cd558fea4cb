//! `loadprint-collect probes`: what can be read on this host, and what is missing where it cannot.

use std::time::Duration;

use loadprint_probes::reference;
use loadprint_recording::journal::Standing;
use serde_json::json;

use crate::cli::Format;
use crate::cli::ProbesOptions;
use crate::tick_journal::Opened;
use crate::tick_journal::open_probes;

/// Prints the list.
///
/// # Errors
/// When a probe was named that is not there.
pub fn run(options: &ProbesOptions) -> anyhow::Result<()> {
    if options.format == Format::Markdown {
        print!("{}", reference::markdown());
        return Ok(());
    }
    let asked = &options.probes;
    let opened = open_probes(
        asked,
        &asked.host(),
        &asked.options(Duration::from_secs(1), None)?,
    )?;
    match options.format {
        Format::Json => println!("{:#}", opened.iter().map(describe).collect::<serde_json::Value>()),
        Format::Text | Format::Markdown => {
            let width = opened.iter().map(|opened| opened.entry.name.len()).max();
            opened
                .iter()
                .for_each(|opened| print(opened, width.unwrap_or_default() + 1));
        }
    }
    Ok(())
}

fn describe(opened: &Opened) -> serde_json::Value {
    let (status, reason) = opened.standing();
    let schema = opened.schema();
    let mut line = json!({
        "name": opened.entry.name,
        "status": status,
        "reason": reason,
        "help": opened.entry.help,
        "read": reference::cadence(opened.entry.cadence),
        "shape": schema.shape,
        "entity": schema.entity,
    });
    schema.describe(&mut line, |_| true);
    line
}

fn print(opened: &Opened, width: usize) {
    let (status, reason) = opened.standing();
    let word = match status {
        Standing::Running => "running",
        Standing::Off => "off",
        Standing::Unavailable => "unavailable",
    };
    println!(
        "{:<width$} {word:<12} {}",
        opened.entry.name,
        reason.unwrap_or(opened.entry.help)
    );
}
