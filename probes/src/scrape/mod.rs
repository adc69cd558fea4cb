//! Scrapes endpoints that expose metrics as Prometheus text or OpenMetrics, and records every
//! sample as exposed.
//!
//! A separate thread scrapes each endpoint, so that only the rows of an endpoint that hangs are
//! missing. If a response arrives after its tick, a later tick has its rows, and the row `up` has
//! the time at which the scrape started.

pub mod endpoint;
pub mod exposition;
pub mod line;
pub mod target;

use std::time::Duration;
use std::time::Instant;

use endpoint::Endpoint;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "scrape",
    "metrics of Prometheus and OpenMetrics endpoints",
    &endpoint::SCHEMA,
    open,
)
.live();

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let scrapes = &options.scrapes;
    if scrapes.targets.is_empty() {
        return Err(NotRunning::Off(
            "no endpoint is named; name one with --scrape NAME=URL".to_owned(),
        ));
    }
    let client = endpoint::client(scrapes).map_err(|why| {
        NotRunning::Unavailable(format!(
            "{why}; fix the file or name another one with --scrape-ca"
        ))
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

    fn wait(&mut self, timeout: Duration) {
        let start = Instant::now();
        for reading in &mut self.readings {
            reading.probe.wait(timeout.saturating_sub(start.elapsed()));
        }
    }

    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut pending = None;
        self.read_ns = None;
        for reading in self
            .readings
            .iter_mut()
            .filter(|reading| reading.probe.is_pending())
        {
            reading.rows.clear();
            match reading.probe.sample(&mut reading.rows) {
                Ok(()) => {
                    rows.append(&reading.rows);
                    self.read_ns = span(self.read_ns, reading.probe.read_ns());
                }
                Err(error @ ProbeError::Pending(_)) => pending = Some(error),
                Err(error) => return Err(error),
            }
        }
        match pending {
            Some(error) if rows.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    fn read_ns(&self) -> Option<(i64, i64)> {
        self.read_ns
    }
}

/// The time from the earlier start to the later end.
fn span(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
