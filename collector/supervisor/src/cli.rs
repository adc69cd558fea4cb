//! The command line. Each command prints one line of JSON.

use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use clap::Parser;
use clap::Subcommand;

use crate::client;
use crate::guard;
use crate::launch;
use crate::launch::Options;
use crate::protocol::Request;
use crate::protocol::absolute;

const EXAMPLES: &str = "\
Examples:
  loadprint-supervise start  --state /run/loadprint/one --lease 60s --controller-pid $$
  loadprint-supervise mount  --state /run/loadprint/one --proc /srv/root/proc
  loadprint-supervise netns  --state /run/loadprint/one load --host-address 198.18.0.1/30 --peer-address 198.18.0.2/30
  loadprint-supervise run    --state /run/loadprint/one server --cpus 0-3 --chroot /srv/root --user 64033:64033 -- /usr/sbin/mysqld --datadir=/srv/data
  loadprint-supervise irqs   --state /run/loadprint/one --cpus 0-3 nvme0n1 eth0
  loadprint-supervise run    --state /run/loadprint/one load --cpus 4-7 --memory-nodes 1 --netns load -- loadprint-load run oltp_read_write
  loadprint-supervise wait   --state /run/loadprint/one load --for 20s
  loadprint-supervise freeze --state /run/loadprint/one server load
  loadprint-supervise end    --state /run/loadprint/one

Every command renews the lease. Only root may have write access to the parent of the state directory; `start` creates both
(0700). Use a file system in memory (/run/loadprint/NAME where /run is a tmpfs): status.json is rewritten every second,
which would be disk I/O on the machine under test. Errors are one line on stderr, with exit status 2.";

#[derive(Debug, Parser)]
#[command(name = "loadprint-supervise", version, about = "Owns the processes, mounts and network namespaces of one run; removes them when the lease expires", after_help = EXAMPLES)]
struct Cli {
    /// The supervisor's state directory
    #[arg(long = "state", value_name = "DIR", global = true, value_parser = absolute)]
    state_dir: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a supervisor; returns when its socket answers
    Start(Options),
    #[command(hide = true)]
    Serve(Options),
    #[command(flatten)]
    Request(Request),
}

/// Parses the command line and runs the command.
pub fn run() -> Result<()> {
    let Cli { state_dir, verb } = Cli::parse();
    let state_dir = state_dir.context("the state directory is missing; add --state DIR")?;
    match verb {
        Verb::Start(options) => launch::start(&Options { state_dir, ..options }),
        Verb::Serve(options) => guard::serve(&Options { state_dir, ..options }),
        Verb::Request(Request::End) => client::end(&state_dir),
        Verb::Request(request) => client::ask(&state_dir, &request),
    }
}
