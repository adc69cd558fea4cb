//! Tests of journals and tables.

#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

#[path = "../common/mod.rs"]
mod common;
mod journal;
mod tables;
