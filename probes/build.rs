//! Compiles the eBPF programs of `src/bpf` and `tests/bpf` and generates their Rust types. Needs
//! clang, but no kernel headers.

#![allow(clippy::expect_used, clippy::panic, reason = "a failure stops the build")]

/// The recorded format defines the buckets; the programs get them as macros.
#[allow(dead_code, unreachable_pub, reason = "the build needs the constants only")]
#[path = "../collector/recording/src/histogram.rs"]
mod histogram;

use std::env;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    println!("cargo::rerun-if-changed=../collector/recording/src/histogram.rs");
    for dir in ["src/bpf", "tests/bpf"] {
        println!("cargo::rerun-if-changed={dir}");
        compile(dir);
    }
}

fn compile(dir: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = fs::read_dir(dir).expect("the package contains the programs");
    for source in sources.map(|entry| entry.expect("the directory is readable").path()) {
        let name = source
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(stem) = name.strip_suffix(".bpf.c") else {
            continue;
        };
        SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                "-Isrc/bpf",
                // 32-bit operations, since Linux 5.1 (092ed0968bb6): less code.
                "-mcpu=v3",
                &format!("-DHISTOGRAM_BUCKETS={}", histogram::BUCKETS),
                &format!("-DHISTOGRAM_GROUPING={}", histogram::GROUPING),
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-function",
                "-Wno-unused-parameter",
            ])
            .build_and_generate(out.join(format!("{stem}.skel.rs")))
            .unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
    }
}
