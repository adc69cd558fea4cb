//! `loadprint-collect`: records the counters of a host, once a second, into a run directory.

mod canary;
mod cli;
#[cfg(feature = "mysql")]
mod cli_mysql;
mod cli_scrape;
mod fingerprint;
mod list_probes;
mod live;
mod opened_probe;
mod record;
mod recorder;
mod schedule;
mod wakeup;

use std::env;
use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::AND;
use cli::Cli;
use cli::Command;
use cli::FingerprintOptions;
use cli::Further;
use cli::RecordOptions;
use loadprint_probes::symbols::helper;
use loadprint_recording::files;

/// The name and version of this program, as every file that it writes records them.
const WRITER: &str = concat!("loadprint-collect ", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    let result = match commands() {
        Ok(commands) => run(commands),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            error.exit();
        }
        Err(error) => {
            // The first paragraph of clap's message is the error; the rest is usage, which `--help`
            // prints in full.
            let text = error.render().to_string();
            let paragraph: Vec<_> = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.is_empty())
                .collect();
            Err(anyhow::anyhow!(
                "{}; see --help",
                paragraph.join(" ").trim_start_matches("error: ")
            ))
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("loadprint-collect: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The command, and the further recordings of `record`.
fn commands() -> clap::error::Result<(Command, Vec<RecordOptions>)> {
    let words: Vec<_> = env::args_os().collect();
    let mut groups = words.split(|word| word == AND);
    let command = Cli::try_parse_from(groups.next().unwrap_or_default())?.command;
    let further = groups.map(|options| {
        let name: [OsString; 1] = [AND.into()];
        Further::try_parse_from(name.iter().chain(options)).map(|Further { options }| options)
    });
    Ok((command, further.collect::<Result<_, _>>()?))
}

fn run((command, mut further): (Command, Vec<RecordOptions>)) -> anyhow::Result<ExitCode> {
    match command {
        Command::Record(options) => {
            further.insert(0, *options);
            if further.len() > 1 && !further.iter().all(|each| each.on_request) {
                anyhow::bail!(
                    "{AND}: add --on-request to each recording: only then can several have one recorder"
                );
            }
            record::run(&further)
        }
        _ if !further.is_empty() => anyhow::bail!("{AND}: only record has several recordings; remove it"),
        Command::Finish { run } => finish(&run),
        Command::Probes(options) => list_probes::run(&options),
        Command::Fingerprint(options) => print_fingerprint(&options),
        Command::Canary(options) => canary::run(&options),
        Command::Symbols { proc_root } => return Ok(helper::run(&proc_root)),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the fingerprint.json of a recording of this host.
fn print_fingerprint(options: &FingerprintOptions) -> anyhow::Result<()> {
    let facts = fingerprint::read(
        &options.roots.host(),
        &options.roots.root,
        &options.cpusets,
        options.data_dir.as_deref(),
        None,
    );
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&facts)?)?;
    Ok(())
}

/// Writes the tables of killed recorders and the manifest.
fn finish(run: &Path) -> anyhow::Result<()> {
    if !run.join("run.json").exists() && !record::has_recording(run) {
        anyhow::bail!(
            "{}: not a run directory: it contains neither run.json nor a recording",
            run.display()
        );
    }
    files::require_trusted(run)?;
    for role in loadprint_recording::finish::run(run)? {
        if record::write_run_json(run, &role)? {
            // The manifest was written before this file.
            loadprint_recording::manifest::write(run)?;
        }
        writeln!(io::stdout(), "{}", record::summary(&role))?;
    }
    Ok(())
}
