//! Tests of the recorder's binary.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

mod blocked;
mod canary;
#[path = "../common/mod.rs"]
mod common;
mod credentials;
mod disk_full;
mod ebpf;
#[allow(dead_code, reason = "its other traps are for the load generator")]
#[path = "../../../workloads/tests/common/fake_login.rs"]
mod fake_login;
mod fingerprint;
#[path = "../common/hang.rs"]
mod hang;
mod other_users;
#[path = "../../../workloads/tests/common/packets.rs"]
mod packets;
mod record;
mod unprivileged;

/// What most tests use.
mod prelude {
    pub use crate::common::*;
}
