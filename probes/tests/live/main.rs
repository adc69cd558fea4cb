//! Tests of probes on the running kernel; `./test full rust-live` runs them one at a time.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test stops where it failed"
)]

#[path = "../children/mod.rs"]
mod children;
#[path = "../common/mod.rs"]
mod common;
#[path = "../control_group/mod.rs"]
mod control_group;
mod ebpf_block;
mod ebpf_irq;
mod ebpf_programs;
mod ebpf_tcp;
mod hostile_symbols;
mod perf;
mod profile;
mod sched;
mod statements;
mod states;
mod states_cpu;
mod syscalls;
#[path = "../watched/mod.rs"]
mod watched;
