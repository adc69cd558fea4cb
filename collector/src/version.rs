//! The name and version of this program, as every file that it writes records them.

/// The value of `writer` in tables and in `canary.jsonl`.
pub const WRITER: &str = concat!("loadprint-collect ", env!("CARGO_PKG_VERSION"));
