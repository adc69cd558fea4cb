//! The name of a symbol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loadprint_probes::symbols::MAX_NAME;
use loadprint_probes::symbols::demangle::demangle;

fuzz_target!(|name: &[u8]| assert!(demangle(name).len() <= MAX_NAME));
