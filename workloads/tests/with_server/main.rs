//! Tests of the generator's binary with a real server, which `./test` starts. Its socket is in
//! LOADPRINT_TEST_SOCKET and, where the account needs a password, an option file in
//! LOADPRINT_TEST_DEFAULTS. Without them every test fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking"
)]

mod arm;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod counts;
mod engine;
mod errors;
mod external_command;
mod external_hammerdb;
mod external_sysbench;
mod hostile;
mod oltp;
#[allow(dead_code, reason = "a part of it is for other servers")]
#[path = "../common/packets.rs"]
mod packets;
mod protocols;
mod statements;
mod sweep;
mod sysbench;
mod tproc;

/// What most tests use.
mod prelude {
    pub use crate::common::mysqld::Mysqld;
    pub use crate::common::running::InTurns;
    pub use crate::common::running::Running;
    pub use crate::common::sql::Sql;
    pub use crate::common::*;
}
