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

/// The fixtures of the tests.
mod prelude {
    pub use crate::children::*;
    pub(crate) use crate::common;
    pub use crate::control_group::ControlGroup;
    pub use crate::readings::*;
    pub use crate::watched::Watched;
    pub use loadprint_probes::Host;
    pub use loadprint_probes::NotRunning;
    pub use loadprint_probes::Options;
    pub use loadprint_probes::ebpf::Shared;
}
