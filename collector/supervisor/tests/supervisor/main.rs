//! Tests of the supervisor's binary.

#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;
mod errors;
#[path = "../../../tests/common/hang.rs"]
mod hang;
mod isolation;
mod lease;
mod memory;
mod other_users;
mod processes;

/// What most tests use.
mod prelude {
    pub use crate::common::*;
}
