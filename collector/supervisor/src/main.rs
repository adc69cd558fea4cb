//! `loadprint-supervise`: owns the processes, mounts and network namespaces of one run on a target, and removes
//! them when it is told to, when its lease runs out or when its controller is gone.
//!
//! Two processes make one supervisor. The *guard* opens a private mount namespace and forks the *daemon*, which
//! does the work; when the daemon is killed outright its orphans fall to the guard, which ends them. A kill of both
//! at once is left to PDEATHSIG for the direct children, and to the next `start` for the rest.
//! It cannot see processes that something else starts on its behalf (a service manager, a container engine).
//!
//! No capability is dropped: whoever opens the socket (0600, in a directory 0700) can have any program run as root,
//! and a root child regains the bounding set when it executes, so a smaller set here would protect nothing.

mod account;
mod cleanup;
mod cli;
mod client;
mod connection;
mod cpus;
mod daemon;
mod guard;
mod jobs;
mod launch;
mod log;
mod mounts;
mod netns;
mod output;
mod placement;
mod procfs;
mod protocol;
mod signals;
mod spawn;
mod state;
mod state_dir;
mod status;
mod stop;

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
