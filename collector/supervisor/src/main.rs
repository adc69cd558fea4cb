//! `loadprint-supervise`: owns the processes, mounts and network namespaces of one run on a target
//! host, and the affinities of interrupts that it changed. It removes or restores them on request, when its lease expires, or when its controller exits.
//!
//! A supervisor has two processes. The *guard* opens a private mount namespace and forks the
//! *daemon*, which does the work. Each process has a control group, with which all that it forked ends.
//! When the daemon is killed, the guard ends the groups. When both are killed, PDEATHSIG kills the direct
//! children, and the next `start` ends the groups. Processes that a service manager or a container engine
//! starts on request are not covered.
//!
//! The supervisor drops no capability: a client of the socket (0600, in a directory 0700) can run
//! any program as root, and a root child regains its capabilities at exec, so a smaller set would
//! protect nothing.

mod cleanup;
mod cli;
mod client;
mod connection;
mod cpus;
mod daemon;
mod groups;
mod guard;
mod interrupts;
mod jobs;
mod launch;
mod log;
mod memory;
mod mounts;
mod netns;
mod output;
mod placement;
mod procfs;
mod protocol;
mod spawn;
mod state;
mod state_dir;
mod status;
mod stop;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loadprint-supervise: {error:#}");
            ExitCode::from(2)
        }
    }
}
