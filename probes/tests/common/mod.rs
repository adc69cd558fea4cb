//! Reads the fake host of `tests/fixtures/host` and formats its rows as text.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_probes::ProbeError;
use loadprint_probes::symbols::Symbols;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Type;

/// A path under the repository's `tests`.
pub fn tests(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests")).join(path)
}

pub fn host(tick: &str) -> Host {
    Host::new(
        tests(&format!("fixtures/host/{tick}/proc")),
        tests(&format!("fixtures/host/{tick}/sys")),
    )
}

/// Watches the server of the fixture, with two CPU sets and process 777 as the recorder.
pub fn options() -> Options {
    Options {
        processes: vec!["server=4242".parse().unwrap()],
        cpusets: vec![
            ("server".to_owned(), "0-1".parse().unwrap()),
            ("load".to_owned(), "2-3".parse().unwrap()),
        ],
        recorder_pid: 777,
        ..Options::default()
    }
}

/// The probe of this name.
pub fn entry(name: &str) -> &'static ProbeEntry {
    PROBES.iter().find(|entry| entry.name == name).unwrap()
}

/// The helper that reads symbols.
pub fn symbols() -> Option<Symbols> {
    let program = Path::new(env!("CARGO_BIN_EXE_symbol-helper"));
    Some(Symbols::start(program, Path::new("/proc")).unwrap())
}

/// Opens a probe that shares no eBPF programs with another.
pub fn open(entry: &ProbeEntry, host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    entry.open(host, options, &Rc::default())
}

/// One sample of a probe on the fake host.
pub fn sample(entry: &ProbeEntry, tick: &str, options: &Options) -> Rows {
    let mut probe =
        open(entry, &host(tick), options).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    let mut rows = Rows::default();
    read(probe.as_mut(), &mut rows).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    rows
}

/// One line for each row: entity, then column=value. Nulls are left out.
pub fn words(entry: &ProbeEntry, rows: &Rows) -> Vec<String> {
    let columns = &entry.schema.columns;
    let row = |row| {
        let mut line: Vec<String> = vec![
            rows.entity(row)
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>()
                .join("/"),
        ];
        for (place, column) in columns.iter().enumerate() {
            let value = match (rows.value(row, place, columns.len()), column.storage) {
                (Value::Null, _) => continue,
                (Value::Bits(bits), Type::Int64) => bits.cast_signed().to_string(),
                (Value::Bits(bits), Type::Double) => f64::from_bits(bits).to_string(),
                (Value::Bits(bits), _) => bits.to_string(),
                (Value::Text(text), _) => format!("`{}`", String::from_utf8_lossy(text)),
                (Value::List(list), _) => format!("{list:?}"),
            };
            line.push(format!("{}={value}", column.name));
        }
        line.join(" ")
    };
    let mut lines: Vec<_> = (0..rows.len()).map(row).collect();
    lines.sort();
    lines
}

/// The probes that read files under the roots, which a fake host has.
pub fn of_files() -> impl Iterator<Item = &'static ProbeEntry> {
    PROBES.iter().filter(|entry| !entry.live)
}

/// Reads once; waits for a read on a separate thread.
pub fn read(probe: &mut dyn Probe, rows: &mut Rows) -> Result<(), ProbeError> {
    rows.clear();
    probe.begin();
    probe.wait(Duration::from_secs(60));
    probe.sample(rows)
}
