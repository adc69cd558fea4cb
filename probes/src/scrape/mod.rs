//! Endpoints that expose metrics as Prometheus text or OpenMetrics: every sample as it was exposed, on the recorder's clock.
//!
//! Each endpoint is read by a thread of its own beside the ticks, so that one that hangs costs only its own rows. Of a tick
//! at which an endpoint's answer is not there yet it has no rows; they come with a later tick, and the row `up` says when that
//! scrape began.

pub mod endpoint;
pub mod exposition;
pub mod line;
pub mod rows;
pub mod series;
pub mod target;

use std::time::Duration;
use std::time::Instant;

use loadprint_recording::rows::Rows;

use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;
use endpoint::Endpoint;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "scrape",
    "metrics of Prometheus and OpenMetrics endpoints",
    &rows::SCHEMA,
    open,
)
.live();

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let scrapes = &options.scrapes;
    if scrapes.targets.is_empty() {
        return Err(NotRunning::Off(
            "no endpoint is named; --scrape NAME=URL names one".to_owned(),
        ));
    }
    let client = endpoint::client(scrapes).map_err(|why| {
        NotRunning::Unavailable(format!("{why}; mend it or name another after --scrape-ca"))
    })?;
    let reading = |target: &target::Target| {
        let mut endpoint = Endpoint::new(target.clone(), client.clone(), scrapes);
        let probe = Background::spawn("scrape", move |rows| {
            endpoint.read(rows);
            Ok(())
        });
        Reading {
            probe,
            rows: Rows::default(),
        }
    };
    Ok(Box::new(Scrape {
        readings: scrapes.targets.iter().map(reading).collect(),
        read_ns: None,
    }))
}

#[derive(Debug)]
struct Reading {
    probe: Box<dyn Probe>,
    rows: Rows,
}

#[derive(Debug)]
struct Scrape {
    readings: Vec<Reading>,
    read_ns: Option<(i64, i64)>,
}

impl Probe for Scrape {
    fn begin(&mut self) {
        self.readings.iter_mut().for_each(|reading| reading.probe.begin());
    }

    fn is_pending(&self) -> bool {
        self.readings.iter().any(|reading| reading.probe.is_pending())
    }

    fn wait(&mut self, patience: Duration) {
        let begun = Instant::now();
        for reading in &mut self.readings {
            reading.probe.wait(patience.saturating_sub(begun.elapsed()));
        }
    }

    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut waiting = None;
        self.read_ns = None;
        for Reading { probe, rows: own } in &mut self.readings {
            if !probe.is_pending() {
                continue;
            }
            own.clear();
            match probe.sample(own) {
                Ok(()) => {
                    rows.append(own);
                    self.read_ns = span(self.read_ns, probe.read_ns());
                }
                Err(error @ ProbeError::Pending(_)) => waiting = Some(error),
                Err(error) => return Err(error),
            }
        }
        match waiting {
            Some(error) if rows.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    fn read_ns(&self) -> Option<(i64, i64)> {
        self.read_ns
    }
}

/// From the first beginning to the last end.
fn span(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
