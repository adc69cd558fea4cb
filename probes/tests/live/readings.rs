//! Opens and reads probes of the running kernel, and subtracts two readings.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Index;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::histogram::lower;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

use crate::common;

/// A running probe.
pub struct Live {
    entry: &'static ProbeEntry,
    pub probe: Box<dyn Probe>,
}

/// The numbers of a row that are not null, by column, and its buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub numbers: BTreeMap<String, u64>,
    pub nulls: BTreeSet<String>,
    pub buckets: Vec<u64>,
}

/// Rows by entity, whose parts are joined with blanks.
pub type Reading = BTreeMap<String, Row>;

/// Options that watch these processes, each `ROLE=PROCESS`.
pub fn watching(processes: &[String]) -> Options {
    Options {
        processes: processes.iter().map(|process| process.parse().unwrap()).collect(),
        ..Options::default()
    }
}

/// Why a probe does not run.
pub fn refusal(name: &str, options: &Options) -> NotRunning {
    common::open(common::entry(name), &Host::default(), options).unwrap_err()
}

impl Live {
    pub fn open(name: &str, options: &Options) -> Self {
        Self::sharing(name, options, &Rc::default())
    }

    /// Opens a probe that shares eBPF programs with others.
    pub fn sharing(name: &str, options: &Options, shared: &Rc<Shared>) -> Self {
        let opened = common::entry(name).open(&Host::default(), options, shared);
        Self::of(name, opened.unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    pub fn of(name: &str, probe: Box<dyn Probe>) -> Self {
        let entry = common::entry(name);
        Self { entry, probe }
    }

    pub fn read(&mut self) -> Reading {
        let mut rows = Rows::default();
        common::read(self.probe.as_mut(), &mut rows).unwrap();
        let columns = &self.entry.schema.columns;
        assert!(rows.has_width(columns.len()), "{}", self.entry.name);
        let row = |row| {
            let entity: Vec<_> = rows.entity(row).map(String::from_utf8_lossy).collect();
            let mut values = Row::default();
            for (place, column) in columns.iter().enumerate() {
                match rows.value(row, place, columns.len()) {
                    Value::Bits(number) => drop(values.numbers.insert(column.name.to_string(), number)),
                    Value::List(buckets) => values.buckets = buckets.to_vec(),
                    Value::Null => drop(values.nulls.insert(column.name.to_string())),
                    Value::Text(_) => {}
                }
            }
            (entity.join(" "), values)
        };
        (0..rows.len()).map(row).collect()
    }
}

/// A number by column; 0 if it is null, and of an entity that has no row yet.
impl Index<&str> for Row {
    type Output = u64;

    fn index(&self, column: &str) -> &u64 {
        let number = self.numbers.get(column);
        number.unwrap_or_else(|| {
            let has_row = !self.numbers.is_empty() || !self.nulls.is_empty();
            assert!(
                !has_row || self.nulls.contains(column),
                "{column} is no column: {self:?}"
            );
            &0
        })
    }
}

impl Row {
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
pub fn between(before: &Reading, after: &Reading, entity: &str) -> Row {
    let mut row = after.get(entity).cloned().unwrap_or_default();
    if let Some(before) = before.get(entity) {
        for (column, number) in &mut row.numbers {
            *number -= before[column];
        }
        for (bucket, count) in row.buckets.iter_mut().zip(&before.buckets) {
            *bucket -= count;
        }
    }
    row
}

/// Repeats `attempt` until it succeeds, up to a long timeout; its error is what it saw.
pub fn repeat<T, E: Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(seen) => assert!(Instant::now() < deadline, "{seen:?}"),
        }
        thread::yield_now();
    }
}

/// Waits until `poll` returns a value, as [`repeat`].
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    repeat(|| poll().ok_or(what))
}

/// Waits until `is_done`, as [`repeat`].
pub fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    eventually(what, || is_done().then_some(()));
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
