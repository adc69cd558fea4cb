//! Compiles the eBPF programs of `src/bpf` and generates their Rust side; needs clang, and no kernel headers.

#![allow(clippy::expect_used, clippy::panic, reason = "a build stops where it failed")]
use std::env;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = fs::read_dir("src/bpf").expect("the programs lie in src/bpf");
    for source in sources.map(|entry| entry.expect("src/bpf can be read").path()) {
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
