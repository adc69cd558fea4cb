//! Compares every probe on the fake host at two ticks with `tests/golden/recorder`.
//!
//! `LOADPRINT_BLESS=1 cargo test --release -p loadprint-probes --test files golden` rewrites the files.

use crate::common;
use std::env;
use std::fs;

use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::ProbeEntry;

#[test]
fn rows_of_the_fake_host_are_unchanged() {
    let dir = common::tests("golden/recorder");
    fs::create_dir_all(&dir).unwrap();
    let mut different = vec![];
    for entry in common::of_files() {
        let mut text = String::new();
        for tick in ["t0", "t1"] {
            let rows = common::sample(entry, tick, &common::options());
            text += &format!("# {tick}\n{}\n", common::words(entry, &rows).join("\n"));
        }
        let path = dir.join(format!("{}.txt", entry.name));
        if env::var_os("LOADPRINT_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        if fs::read_to_string(&path).unwrap_or_default() != text {
            fs::write(path.with_extension("txt.got"), &text).unwrap();
            different.push(format!("diff {0} {0}.got", path.display()));
        }
    }
    assert!(different.is_empty(), "\n{}", different.join("\n"));
}

#[test]
fn every_golden_file_has_its_probe() {
    for file in fs::read_dir(common::tests("golden/recorder")).unwrap() {
        let path = file.unwrap().path();
        let is_of = |entry: &ProbeEntry| path.file_stem().is_some_and(|stem| stem == entry.name);
        assert!(common::of_files().any(is_of), "{}", path.display());
    }
}

fn line(name: &str, tick: &str, options: &Options, start: &str) -> Option<String> {
    let entry = PROBES.iter().find(|entry| entry.name == name).unwrap();
    let rows = common::sample(entry, tick, options);
    common::words(entry, &rows)
        .into_iter()
        .find(|line| line.starts_with(start))
}

/// Values that the golden files must have even if they are rewritten.
#[test]
fn missing_values_are_null_and_zeros_are_zero() {
    let options = common::options();
    let at = |name: &str, tick: &str, start: &str| line(name, tick, &options, start);
    // CPU 2 is offline at t1; iowait decreased by 20.
    assert!(at("cpu", "t0", "2 ").is_some() && at("cpu", "t1", "2 ").is_none());
    assert!(at("cpu", "t0", "all").unwrap().contains("iowait=51190 "));
    assert!(at("cpu", "t1", "all").unwrap().contains("iowait=51170 "));
    assert!(!at("cpu", "t0", "0 ").unwrap().contains("ctxt"));
    // Eleven fields: no discards and no flushes; dm-0 has them.
    let old = at("disk", "t0", "sda").unwrap();
    assert!(old.ends_with("weighted_ms=32323"), "{old}");
    assert!(
        at("disk", "t0", "dm-0")
            .unwrap()
            .ends_with("flushes=210330 flush_ms=109002")
    );
    assert!(at("disk", "t0", "loop0").is_none() && at("disk", "t0", "loop1").is_some());
    // The counter has wrapped.
    assert!(
        at("nic", "t0", "ens5")
            .unwrap()
            .contains("tx_bytes=18446744073709551000")
    );
    assert!(at("nic", "t1", "ens5").unwrap().contains("tx_bytes=1999384"));
    assert_eq!(at("tcp", "t0", "Tcp.MaxConn").unwrap(), "Tcp.MaxConn value=-1");
    // The recorder's io file belongs to another user, so its values are null. The server's name
    // contains brackets.
    assert!(!at("process", "t0", "recorder").unwrap().contains("read_bytes"));
    assert!(
        at("process", "t0", "server")
            .unwrap()
            .contains("comm=`mysqld (main) x`")
    );
    assert!(
        at("threads", "t0", "server/4242/4251").is_some()
            && at("threads", "t1", "server/4242/4251").is_none()
    );
}

#[test]
fn interrupts_are_summed_per_line_cpu_and_set() {
    let options = common::options();
    let at = |start: &str| line("interrupts", "t0", &options, start).unwrap();
    assert_eq!(
        at("25/all"),
        "25/all count=1030083 description=`PCI-MSI 524289-edge      nvme0q1`"
    );
    assert_eq!(
        at("LOC/server"),
        format!("LOC/server count={}", 20190221 + 19887120)
    );
    assert_eq!(at("LOC/load"), format!("LOC/load count={}", 19900110 + 19912333));
    let cpu3 = 1030083 + 10 + 19912333 + 901201;
    assert_eq!(at("all/3"), format!("all/3 count={cpu3}"));
    assert_eq!(line("interrupts", "t1", &options, "all/2"), None);
    assert_eq!(
        line("interrupts", "t1", &options, "ERR/").unwrap(),
        "ERR/all count=1"
    );
    assert_eq!(line("interrupts", "t0", &options, "27/2"), None);
}

#[test]
fn partitions_are_not_recorded() {
    assert_eq!(line("disk", "t0", &common::options(), "nvme0n1p2"), None);
}
