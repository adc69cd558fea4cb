//! `loadprint-collect serve`: the probes are read when somebody scrapes, and at no other time.

use std::time::Instant;

use anyhow::Context;

use crate::capabilities;
use crate::cli::ServeOptions;
use crate::probe_sampler::Reader;
use crate::probe_sampler::When;
use crate::record::raise_descriptor_limit;
use crate::schedule::Stop;
use crate::schedule::Woken;
use crate::tick_journal::open_probes;
use crate::tick_journal::refuse_unknown;

/// Serves until it is told to stop.
///
/// # Errors
/// When an address is taken, or a file or name on the command line cannot be used.
pub fn run(options: &ServeOptions) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot take over SIGTERM and SIGINT")?;
    raise_descriptor_limit();
    refuse_unknown(&options.probes)?;
    let listening = options.web.listen_anyway()?;
    let probe_options = options.probes.options(options.min_interval, None)?;
    let probes = open_probes(&options.probes, &options.probes.host(), &probe_options)?;
    if let Err(error) = capabilities::narrow(&probes, &[]) {
        eprintln!("loadprint-collect: {error:#}");
    }
    let mut reader = Reader::new(probes, 1, options.min_interval);
    let mut newest: Option<Instant> = None;
    let (server, desk) = listening.start()?;
    loop {
        match stop.wait(None, Some(desk.bell()))? {
            Woken::Stopped => break,
            // It reads everything whenever it is asked.
            Woken::Due | Woken::Wished => {}
            Woken::Asked => desk.answer(|| {
                if newest.is_none_or(|newest| newest.elapsed() >= options.min_interval) {
                    newest = Some(Instant::now());
                    reader.read(When::Scrape);
                }
                reader.publish()
            }),
        }
    }
    drop(server);
    Ok(())
}
