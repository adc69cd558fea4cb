//! Tests of journals and tables.

#[path = "../common/mod.rs"]
mod common;
mod journal;
mod tables;
