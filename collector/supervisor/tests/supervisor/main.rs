//! Tests of the supervisor's binary.

#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;
mod errors;
mod isolation;
mod lease;
mod memory;
mod other_users;
mod processes;
