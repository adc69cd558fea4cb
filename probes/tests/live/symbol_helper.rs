//! The helper that reads symbols, as a program for the tests.

use std::env::args_os;
use std::path::Path;
use std::process::ExitCode;

use loadprint_probes::symbols::helper;

fn main() -> ExitCode {
    let proc = args_os().nth(2).unwrap_or_else(|| "/proc".into());
    helper::run(Path::new(&proc))
}
