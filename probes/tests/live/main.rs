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
    pub use crate::children::Child;
    pub use crate::children::Kernel;
    pub use crate::children::NAP;
    pub use crate::children::Running;
    pub use crate::children::alone_on_one_cpu;
    pub use crate::children::compile;
    pub use crate::children::getppid;
    pub use crate::children::nap;
    pub use crate::children::pin;
    pub use crate::children::poll;
    pub use crate::children::run;
    pub use crate::children::shared_numbers;
    pub(crate) use crate::common;
    pub use crate::control_group::ControlGroup;
    pub use crate::readings::Live;
    pub use crate::readings::Reading;
    pub use crate::readings::Row;
    pub use crate::readings::alone;
    pub use crate::readings::between;
    pub use crate::readings::eventually;
    pub use crate::readings::refusal;
    pub use crate::readings::repeat;
    pub use crate::readings::until;
    pub use crate::readings::watching;
    pub use crate::watched::Watched;
    pub use loadprint_probes::Host;
    pub use loadprint_probes::NotRunning;
    pub use loadprint_probes::Options;
    pub use loadprint_probes::ebpf::Shared;
}
