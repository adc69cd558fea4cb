//! Tests of the supervisor's binary.

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod isolation;
mod killed;
mod lease;
mod memory;
mod other_users;
mod processes;
