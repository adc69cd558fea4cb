//! Tests of what depends on the code alone: parsers, declarations, clients.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test stops where it failed"
)]

#[allow(dead_code, reason = "most of it is for live tests")]
#[path = "../live/children.rs"]
mod children;
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
#[allow(dead_code, reason = "most of it is for live tests")]
#[path = "../live/readings.rs"]
mod readings;
mod reference;
mod registry;
mod scrape;
mod scrape_exposition;
