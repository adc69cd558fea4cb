//! The journal of a received recording, up to its tables.
#![no_main]

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use loadprint_recording::finish;

thread_local! {
    static RUN: OnceCell<PathBuf> = const { OnceCell::new() };
}

/// Sets the checksum of every frame: the decoder sees what a sender with bad intentions writes.
fn with_checksums(journal: &[u8]) -> Vec<u8> {
    let mut journal = journal.to_vec();
    let mut rest = journal.get_mut(8..).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk_mut::<8>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > after.len() {
            break;
        }
        let (payload, next) = after.split_at_mut(length);
        head[4..].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        rest = next;
    }
    journal
}

fuzz_target!(|journal: &[u8]| {
    RUN.with(|run| {
        let run = run.get_or_init(|| {
            let run = std::env::temp_dir().join(format!("loadprint-fuzz-{}", std::process::id()));
            fs::create_dir_all(run.join("server")).unwrap();
            run
        });
        fs::write(run.join("server/journal"), with_checksums(journal)).unwrap();
        drop(finish::run(run));
        for entry in fs::read_dir(run.join("server")).unwrap() {
            drop(fs::remove_file(entry.unwrap().path()));
        }
    });
});
