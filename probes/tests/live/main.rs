//! Tests of probes on the running kernel; `./test full rust-live` runs them one at a time.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test stops where it failed"
)]

mod children;
#[path = "../common/mod.rs"]
mod common;
mod control_group;
mod ebpf_block;
mod ebpf_irq;
mod ebpf_programs;
mod ebpf_tcp;
mod hostile_symbols;
mod perf;
mod profile;
mod readings;
mod sched;
mod statements;
mod states;
mod states_cpu;
mod syscalls;
mod watched;
