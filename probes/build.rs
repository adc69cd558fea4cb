//! Compiles the eBPF programs of `src/bpf` and generates their Rust side; needs clang, and no kernel headers.

#![allow(clippy::expect_used, clippy::panic, reason = "a build stops where it failed")]
use std::env;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    // The second has what only tests load.
    for dir in ["src/bpf", "tests/bpf"] {
        println!("cargo::rerun-if-changed={dir}");
        compile(dir);
    }
}

fn compile(dir: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = fs::read_dir(dir).expect("the programs lie there");
    for source in sources.map(|entry| entry.expect("the folder can be read").path()) {
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
