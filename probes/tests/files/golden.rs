//! Compares every probe on the fake host at two ticks with `tests/golden/recorder`.
//!
//! `LOADPRINT_BLESS=1 cargo test --release -p loadprint-probes --test files golden` rewrites the files.

use crate::common;
use std::env;
use std::fs;

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
