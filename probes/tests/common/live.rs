//! Opens and reads probes of the running kernel, and subtracts two readings.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::histogram::lower;
use loadprint_recording::histogram::subtract;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// A running probe of histograms.
pub struct Live {
    entry: &'static ProbeEntry,
    probe: Box<dyn Probe>,
}

/// A row: its histogram, and its other columns in order (0 where null).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub sum: u64,
    pub buckets: Vec<u64>,
    pub others: Vec<u64>,
}

/// Rows by entity, whose parts are joined with blanks.
pub type Reading = BTreeMap<String, Histogram>;

impl Live {
    pub fn open(name: &str, options: &Options) -> Self {
        Self::open_sharing(name, options, &Rc::default())
    }

    /// Opens a probe that shares eBPF programs with others.
    pub fn open_sharing(name: &str, options: &Options, shared: &Rc<Shared>) -> Self {
        let entry = super::entry(name);
        let probe = entry.open(&Host::default(), options, shared);
        let probe = probe.unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { entry, probe }
    }

    pub fn read(&mut self) -> Reading {
        let mut rows = Rows::default();
        super::read(self.probe.as_mut(), &mut rows).unwrap();
        let width = self.entry.schema.columns.len();
        assert!(rows.has_width(width), "{}", self.entry.name);
        let row = |row| {
            let entity: Vec<_> = rows.entity(row).map(String::from_utf8_lossy).collect();
            let number = |column| match rows.value(row, column, width) {
                Value::Bits(bits) => bits,
                _ => 0,
            };
            let Value::List(buckets) = rows.value(row, 1, width) else {
                panic!("{}: the second column is not a histogram", self.entry.name);
            };
            let histogram = Histogram {
                sum: number(0),
                buckets: buckets.to_vec(),
                others: (2..width).map(number).collect(),
            };
            (entity.join(" "), histogram)
        };
        (0..rows.len()).map(row).collect()
    }
}

impl Histogram {
    pub fn nothing() -> Self {
        Self {
            sum: 0,
            buckets: vec![0; BUCKETS],
            others: vec![0; 8],
        }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Lower bound and count of each bucket that is not empty.
    pub fn filled(&self) -> Vec<(u64, u64)> {
        let buckets = self.buckets.iter().enumerate();
        let filled = buckets.filter(|(_, count)| **count > 0);
        filled.map(|(place, count)| (lower(place), *count)).collect()
    }
}

/// The increase of one row between two readings; a missing row counts as zeros.
pub fn between(before: &Reading, after: &Reading, entity: &str) -> Histogram {
    let nothing = Histogram::nothing();
    let after = after.get(entity).unwrap_or(&nothing);
    let before = before.get(entity).unwrap_or(&nothing);
    Histogram {
        sum: after.sum - before.sum,
        buckets: subtract(&after.buckets, &before.buckets),
        others: subtract(&after.others, &before.others),
    }
}

/// Waits until `poll` returns a value, up to a long timeout.
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < deadline, "still waiting: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until no other test on this host, in any process, is in the section with this name; the
/// section ends when the value is dropped. The lock is an abstract unix socket, which the kernel
/// removes with its owner.
pub fn alone(section: &str) -> UnixListener {
    let address = SocketAddr::from_abstract_name(format!("loadprint-test-{section}")).unwrap();
    eventually("the end of another test", || {
        UnixListener::bind_addr(&address).ok()
    })
}
