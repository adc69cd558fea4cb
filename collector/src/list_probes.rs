//! `loadprint-collect probes`: lists the probes with their status on this host, and how to enable
//! those that are unavailable.

use std::io;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use loadprint_probes::reference;
use loadprint_recording::journal::ProbeStatus;
use serde_json::json;

use crate::cli::Format;
use crate::cli::ProbesOptions;
use crate::opened_probe::OpenedProbe;
use crate::opened_probe::open_probes;

/// Prints the list.
///
/// # Errors
/// When the command line names an unknown probe.
pub fn run(options: &ProbesOptions) -> anyhow::Result<()> {
    if options.format == Format::Markdown {
        return Ok(write!(io::stdout(), "{}", reference::markdown())?);
    }
    let selection = &options.probes;
    let probes = open_probes(
        selection,
        &selection.roots.host(),
        &selection.options(Duration::from_secs(1))?,
        &Rc::default(),
    )?;
    match options.format {
        Format::Json => {
            let all = probes.iter().map(to_json).collect::<serde_json::Value>();
            writeln!(io::stdout(), "{all:#}")?;
        }
        Format::Text | Format::Markdown => {
            let width = probes.iter().map(|opened| opened.entry.name.len()).max();
            for opened in &probes {
                print(opened, width.unwrap_or_default() + 1)?;
            }
        }
    }
    Ok(())
}

fn to_json(opened: &OpenedProbe) -> serde_json::Value {
    let (status, reason) = opened.status();
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

fn print(opened: &OpenedProbe, width: usize) -> io::Result<()> {
    let (status, reason) = opened.status();
    let word = match status {
        ProbeStatus::Running => "available",
        ProbeStatus::Off => "off",
        ProbeStatus::Unavailable => "unavailable",
    };
    let text = reason.unwrap_or(opened.entry.help);
    writeln!(io::stdout(), "{:<width$} {word:<12} {text}", opened.entry.name)
}
