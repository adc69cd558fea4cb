//! `loadprint-collect serve`: reads the probes on each scrape and at no other time.

use std::time::Instant;

use anyhow::Context;

use crate::capabilities;
use crate::cli::ServeOptions;
use crate::descriptor_limit::raise_descriptor_limit;
use crate::opened_probe::Purpose;
use crate::opened_probe::open_probes;
use crate::opened_probe::refuse_unknown_names;
use crate::probe_sampler::ProbeSampler;
use crate::probe_sampler::SampleReason;
use crate::wakeup::Signals;
use crate::wakeup::Wakeup;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// When an address is in use, or a file or name on the command line cannot be used.
pub fn run(options: &ServeOptions) -> anyhow::Result<()> {
    let signals = Signals::install().context("cannot install the handlers of SIGTERM and SIGINT")?;
    raise_descriptor_limit();
    refuse_unknown_names(&options.probes)?;
    let listening = options.web.listen_or_default()?;
    let probe_options = options.probes.options(options.min_interval, None)?;
    let host = options.probes.host();
    let probes = open_probes(&options.probes, &host, &probe_options, Purpose::Scrapes)?;
    if let Err(error) = capabilities::drop_unneeded(&probes, &[]) {
        eprintln!("loadprint-collect: warning: {error:#}");
    }
    let mut sampler = ProbeSampler::new(probes, 1, options.min_interval);
    let mut last_read: Option<Instant> = None;
    let (server, responder) = listening.start()?;
    loop {
        match signals.wait(None, Some(responder.wakeup_fd()))? {
            Wakeup::StopRequested => break,
            // Every scrape reads all probes.
            Wakeup::TickDue | Wakeup::SampleAllRequested => {}
            Wakeup::ScrapeRequested => responder.answer(|| {
                if last_read.is_none_or(|time| time.elapsed() >= options.min_interval) {
                    last_read = Some(Instant::now());
                    sampler.sample(SampleReason::Scrape);
                }
                sampler.snapshot()
            }),
        }
    }
    drop(server);
    Ok(())
}
