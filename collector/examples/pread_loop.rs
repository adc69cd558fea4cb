//! Baseline for the recorder's overhead: only reads the same files through open descriptors at the
//! same interval.
//!
//! Usage: `pread_loop INTERVAL_MS COUNT FILE…`. Prints the bytes of one round.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot read must stop")]

use std::env;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

fn main() {
    let mut arguments = env::args().skip(1);
    let interval = Duration::from_millis(arguments.next().unwrap().parse().unwrap());
    let count: u32 = arguments.next().unwrap().parse().unwrap();
    let files: Vec<File> = arguments.map(|path| File::open(path).unwrap()).collect();
    let mut buffer = vec![0; 1 << 16];
    let start = Instant::now();
    let mut bytes = 0;
    for tick in 0..count {
        sleep((interval * tick).saturating_sub(start.elapsed()));
        bytes = 0;
        for file in &files {
            // The data are not used, so that parts may overwrite one another.
            let mut length = 0;
            loop {
                match file.read_at(&mut buffer, length as u64).unwrap() {
                    0 => break,
                    count => length += count,
                }
            }
            bytes += length;
        }
    }
    println!("{bytes}");
}
