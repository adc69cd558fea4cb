//! A program or library that a watched process has mapped.
#![no_main]

#[path = "../../../probes/tests/common/parsers.rs"]
mod parsers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| drop(parsers::elf(bytes)));
