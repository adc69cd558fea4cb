//! The response of a scraped endpoint, in both formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loadprint_probes::scrape::exposition::Format;
use loadprint_probes::scrape::exposition::parse;

fuzz_target!(|body: &[u8]| {
    for format in [Format::Text, Format::OpenMetrics] {
        drop(parse(body, format, &mut |_| {}));
    }
});
