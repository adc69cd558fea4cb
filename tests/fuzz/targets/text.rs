//! A file of procfs or sysfs, among them `/proc/PID/maps`: the first byte chooses its parser.
#![no_main]

#[path = "../../../probes/tests/common/parsers.rs"]
mod parsers;

use libfuzzer_sys::fuzz_target;
use loadprint_recording::rows::Rows;

fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, text)) = bytes.split_first() {
        let parser = &parsers::PARSERS[usize::from(*choice) % parsers::PARSERS.len()];
        let mut parse = (parser.make)();
        // The second time as at the next tick, with lines that did not change.
        for _ in 0..2 {
            drop(parse(text, &mut Rows::default()));
        }
    }
});
