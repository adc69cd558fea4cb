//! `loadprint-load`: runs database workloads on libmysqlclient with one thread per connection.
//! It measures the client side only; the recorder measures the hosts.

mod cli;
mod driver;
mod engine;
#[cfg(test)]
mod engine_tests;
mod external;
mod lock;
mod options;
mod output;
mod random;
mod recording;
mod redaction;
mod registry;
mod report;
mod result;
mod series;
mod server;
mod server_clock;
mod signals;
mod stats;
mod suite;
mod traffic;
mod verb;
mod verbs;
mod workload;

use std::env;
use std::process::ExitCode;

use anyhow::Result;

use cli::Invocation;
use output::Output;

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let text = format!("{error:#}");
            eprintln!(
                "loadprint-load: {}",
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<u8> {
    let arguments = env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned());
    match cli::parse(arguments)? {
        Invocation::Print(text) => Output::default().line(text.trim_end()),
        Invocation::List { json } => Output::default().line(&verbs::list(json)),
        Invocation::Options(workload, values) => Output::default().line(&verbs::options(workload, &values)?),
        Invocation::Verb(verb, workload, values) => return verbs::run_verb(verb, workload, &values),
    }
    Ok(0)
}
