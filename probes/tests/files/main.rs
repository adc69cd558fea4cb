//! Tests of what depends on the code alone: parsers, declarations, clients.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test stops where it failed"
)]

#[path = "../common/mod.rs"]
mod common;
mod forms;
mod fuzz;
mod golden;
mod mysql_client;
mod odd_cells;
#[cfg(feature = "mysql")]
#[path = "../../../workloads/tests/common/packets.rs"]
mod packets;
#[path = "../common/parsers.rs"]
mod parsers;
mod reference;
mod registry;
mod scrape;
mod scrape_exposition;
