//! Checks every probe in the registry: its declaration, its fixtures, and its behaviour on damaged
//! files.

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Kind;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Type;

#[test]
fn every_probe_declares_itself() {
    let mut names = BTreeSet::new();
    for entry in PROBES {
        assert!(names.insert(entry.name), "two probes are called {}", entry.name);
        let name = entry.name;
        assert!(!entry.help.is_empty(), "{name} has no help");
        // in a table of one row it is `all`
        assert!(!entry.schema.entity.is_empty(), "{name} has no entity column");
        let number = entry.schema.columns.len();
        assert!(number <= Schema::MAX_COLUMNS, "{name} has {number} columns");
        let mut columns = BTreeSet::new();
        for column in entry.schema.columns.iter().chain(entry.schema.metrics.iter()) {
            let name = format!("{}.{}", entry.name, column.name);
            assert!(columns.insert(&column.name), "{name} is declared twice");
            assert!(!column.help.is_empty(), "{name} has no help");
            assert!(!column.source.is_empty(), "{name} has no source");
            assert_eq!(column.kind == Kind::Info, column.storage == Type::Text, "{name}");
            assert!(
                !column.help.ends_with('.'),
                "{name}: help is a phrase, not a sentence"
            );
        }
    }
}

#[test]
fn every_probe_has_fixtures_and_complete_rows() {
    for entry in common::of_files() {
        for tick in ["t0", "t1"] {
            let rows = common::sample(entry, tick, &common::options());
            assert!(
                !rows.is_empty(),
                "{}: add its files to tests/fixtures/host/{tick}",
                entry.name
            );
            assert!(rows.has_width(entry.schema.columns.len()), "{}", entry.name);
            let keys: BTreeSet<Vec<_>> = (0..rows.len()).map(|row| rows.entity(row).collect()).collect();
            assert_eq!(keys.len(), rows.len(), "{}: two rows of one entity", entry.name);
        }
    }
}

/// Declared metrics must have the names of the kernel: the fixture has some metrics of each probe.
#[test]
fn declared_metrics_occur() {
    for entry in common::of_files().filter(|entry| !entry.schema.metrics.is_empty()) {
        let rows = common::sample(entry, "t0", &common::options());
        let lines = common::words(entry, &rows);
        let known = entry.schema.metrics.iter().filter(|metric| {
            lines
                .iter()
                .any(|line| line.split(' ').next() == Some(&metric.name))
        });
        assert!(known.count() >= 5, "{}", entry.name);
    }
}

#[test]
fn probes_of_an_empty_host_are_unavailable_with_a_fix() {
    let host = Host::new("/nonexistent", "/nonexistent");
    for entry in PROBES {
        match common::open(entry, &host, &Options::default()) {
            Ok(_) => assert_eq!(entry.name, "process", "processes can start later"),
            Err(NotRunning::Off(reason)) => assert!(reason.contains("--"), "{reason}"),
            Err(NotRunning::Unavailable(reason)) => {
                assert!(
                    reason.starts_with("/nonexistent/") && reason.contains("; "),
                    "{reason}"
                );
            }
        }
    }
}

fn files(dir: &Path, paths: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, paths)
        } else if !path.is_symlink() {
            paths.push(path)
        }
    }
}

/// Each file of the fake /proc is truncated in every line and garbled: errors name the file, and no
/// parser panics.
#[test]
fn damaged_files_are_errors_with_a_position() {
    let dir = tempfile::tempdir().unwrap();
    let original = common::tests("fixtures/host/t0/proc");
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--no-target-directory"]).arg(original);
    assert!(copy.arg(dir.path()).status().unwrap().success());
    let host = Host::new(dir.path(), common::tests("fixtures/host/t0/sys"));
    let mut paths = vec![];
    files(dir.path(), &mut paths);
    for path in paths {
        let whole = fs::read(&path).unwrap();
        let mut probes: Vec<_> = common::of_files()
            .map(|entry| common::open(entry, &host, &common::options()).unwrap())
            .collect();
        let mut rows: Vec<_> = probes.iter().map(|_| Rows::default()).collect();
        let first = words(&mut probes, &mut rows);
        assert_eq!(
            words(&mut probes, &mut rows),
            first,
            "a repeated sample gives the same rows"
        );
        let garbled = whole
            .iter()
            .map(|byte| if byte.is_ascii_digit() { b'?' } else { *byte })
            .collect();
        let cuts = (0..whole.len()).step_by(3).map(|length| whole[..length].to_vec());
        for damaged in cuts.chain([garbled]) {
            fs::write(&path, &damaged).unwrap();
            for (probe, rows) in probes.iter_mut().zip(&mut rows) {
                if let Err(error) = common::read(probe.as_mut(), rows) {
                    let error = error.to_string();
                    assert!(error.starts_with(path.to_str().unwrap()), "{error}");
                    assert_eq!(error.lines().count(), 1, "{error}");
                }
            }
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(
            words(&mut probes, &mut rows),
            first,
            "{} is restored",
            path.display()
        );
    }
}

fn words(probes: &mut [Box<dyn Probe>], rows: &mut [Rows]) -> Vec<Vec<String>> {
    let sample = |((probe, rows), entry): ((&mut Box<dyn Probe>, &mut Rows), &ProbeEntry)| {
        common::read(probe.as_mut(), rows).unwrap();
        common::words(entry, rows)
    };
    probes
        .iter_mut()
        .zip(rows)
        .zip(common::of_files())
        .map(sample)
        .collect()
}
