//! The command line. Each command prints one line of JSON.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use clap::Args;
use clap::Parser;
use clap::Subcommand;

use crate::client;
use crate::guard;
use crate::launch;
use crate::protocol::Request;
use crate::protocol::RunRequest;

const EXAMPLES: &str = "\
Examples:
  loadprint-supervise start  --state /run/loadprint/one --lease 60s --controller-pid $$
  loadprint-supervise mount  --state /run/loadprint/one --proc /srv/root/proc
  loadprint-supervise netns  --state /run/loadprint/one load --host-address 198.18.0.1/30 --peer-address 198.18.0.2/30
  loadprint-supervise run    --state /run/loadprint/one server --cpus 0-3 --chroot /srv/root --user mysql -- /usr/sbin/mysqld --datadir=/srv/data
  loadprint-supervise irqs   --state /run/loadprint/one --cpus 0-3 nvme0n1 eth0
  loadprint-supervise run    --state /run/loadprint/one load --cpus 4-7 --memory-nodes 1 --netns load -- loadprint-load run oltp_read_write
  loadprint-supervise wait   --state /run/loadprint/one load --for 20s
  loadprint-supervise end    --state /run/loadprint/one

Every command renews the lease. Only root may have write access to the parent of the state directory; `start` creates both
(0700). Use a file system in memory (/run/loadprint/NAME where /run is a tmpfs): status.json is rewritten every second,
which would be disk I/O on the machine under test. Errors are one line on stderr, with exit status 2.";

#[derive(Debug, Parser)]
#[command(name = "loadprint-supervise", version, about = "Owns the processes, mounts and network namespaces of one run; removes them when the lease expires", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a supervisor; returns when its socket answers
    Start(Start),
    /// Start a process, pinned before it executes
    Run(Box<Run>),
    /// Wait for a process to end, for a limited time, and print its state
    Wait(Wait),
    /// Send a process its stop signal; kill its process tree after the stop timeout
    Stop(Named),
    /// Mount inside the supervisor's private mount namespace
    Mount(Mount),
    /// Undo a mount made with `mount`
    Unmount(Unmount),
    /// Create a network namespace with a veth pair
    Netns(Netns),
    /// Move the interrupts of block devices and network interfaces to these CPUs until the supervisor ends
    Irqs(Irqs),
    /// Remove this path and everything below it when the supervisor ends
    Own(Own),
    /// Merge a JSON object into the note of status.json (null removes a key)
    Note(Note),
    /// Print the current status, as in status.json
    Status(Target),
    /// Stop everything in reverse order, remove everything, and exit
    End(Target),
    #[command(hide = true)]
    Serve(Start),
}

#[derive(Debug, Args)]
struct Target {
    /// The supervisor's state directory
    #[arg(long = "state", value_name = "DIR")]
    state_dir: PathBuf,
}

#[derive(Debug, Args)]
struct Start {
    #[command(flatten)]
    target: Target,
    /// End after this time without a command
    #[arg(long, default_value = "60s", value_parser = duration)]
    lease: Duration,
    /// End when this process exits
    #[arg(long, value_name = "PID")]
    controller_pid: Option<u32>,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    target: Target,
    /// Name of the process in this supervisor; reusable after the process has ended
    name: String,
    /// CPUs to pin it to, like 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Memory nodes to bind its memory to, like 0-1: it is killed rather than given memory of other nodes
    #[arg(long, value_name = "LIST")]
    memory_nodes: Option<String>,
    /// Network namespace created with `netns`
    #[arg(long, value_name = "NS")]
    netns: Option<String>,
    /// Root directory of the process
    #[arg(long, value_name = "DIR")]
    chroot: Option<PathBuf>,
    /// User, and group after a colon; names are looked up inside the chroot
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Environment variable, in addition to PATH, LANG and (with --user) HOME, USER; nothing is
    /// inherited
    #[arg(long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Working directory, inside the chroot
    #[arg(long, value_name = "DIR", default_value = "/")]
    cwd: PathBuf,
    /// Append its standard output to this file [default: DIR/NAME.stdout]
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,
    /// Append its standard error to this file [default: DIR/NAME.stderr]
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// Stop signal
    #[arg(long, value_name = "SIGNAL", default_value = "TERM")]
    stop_signal: String,
    /// Kill it if it has not stopped after this time
    #[arg(long, default_value = "60s", value_parser = duration)]
    stop_timeout: Duration,
    /// Its role in the run: server, load, recorder …; printed in status.json
    #[arg(long)]
    role: Option<String>,
    /// Program and arguments. Other users can read them in /proc: store secrets in files
    #[arg(last = true, required = true)]
    argv: Vec<String>,
}

#[derive(Debug, Args)]
struct Wait {
    #[command(flatten)]
    target: Target,
    /// The process's name
    name: String,
    /// Return after this time even if it is running. A wait renews the lease; keep it short on a
    /// remote target, where it may outlive its playbook
    #[arg(long = "for", default_value = "20s", value_parser = duration)]
    slice: Duration,
}

#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    target: Target,
    /// The process's name
    name: String,
}

#[derive(Debug, Args)]
struct Mount {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    kind: MountKind,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct MountKind {
    /// Bind-mount SRC at DST (both must exist and be directories, or both files)
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    bind: Option<Vec<PathBuf>>,
    /// Mount proc
    #[arg(long, value_name = "DST")]
    proc: Option<PathBuf>,
    /// Mount a minimal /dev: null, zero, full, random, urandom, tty, shm and the fd links
    #[arg(long, value_name = "DST")]
    dev: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Unmount {
    #[command(flatten)]
    target: Target,
    /// The mount's destination
    destination: PathBuf,
}

#[derive(Debug, Args)]
struct Netns {
    #[command(flatten)]
    target: Target,
    /// The namespace's name in this supervisor
    name: String,
    /// Address and prefix length of the host's interface
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    host_address: String,
    /// Address and prefix length of the interface in the namespace
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    peer_address: String,
}

#[derive(Debug, Args)]
struct Irqs {
    #[command(flatten)]
    target: Target,
    /// CPUs that shall serve the interrupts, like 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: String,
    /// Names as in /sys/class/block and /sys/class/net
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<String>,
}

#[derive(Debug, Args)]
struct Own {
    #[command(flatten)]
    target: Target,
    /// An absolute path; it need not exist yet
    path: PathBuf,
}

#[derive(Debug, Args)]
struct Note {
    #[command(flatten)]
    target: Target,
    /// A JSON object
    json: String,
}

/// A time like `20s`, `1m 30s`, or bare seconds.
fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 20s or 2m"))
}

/// Parses the command line and runs the command.
pub fn run() -> Result<()> {
    let (target, request) = match Cli::parse().verb {
        Verb::Start(start) => return launch::start(&start.into_options()?),
        Verb::Serve(start) => return guard::serve(&start.into_options()?),
        Verb::End(target) => return client::end(&absolute(&target.state_dir)?),
        Verb::Run(run) => run.into_request()?,
        Verb::Wait(wait) => (
            wait.target,
            Request::Wait {
                name: wait.name,
                slice: wait.slice,
            },
        ),
        Verb::Stop(stop) => (stop.target, Request::Stop { name: stop.name }),
        Verb::Mount(mount) => mount.into_request()?,
        Verb::Unmount(unmount) => (
            unmount.target,
            Request::Unmount {
                destination: absolute(&unmount.destination)?,
            },
        ),
        Verb::Netns(netns) => (
            netns.target,
            Request::Netns {
                name: netns.name,
                host_address: netns.host_address,
                peer_address: netns.peer_address,
            },
        ),
        Verb::Irqs(irqs) => (
            irqs.target,
            Request::Irqs {
                cpus: irqs.cpus,
                devices: irqs.devices,
            },
        ),
        Verb::Own(own) => (own.target, Request::Own { path: own.path }),
        Verb::Note(note) => {
            let value = serde_json::from_str(&note.json).context("the note is not JSON")?;
            (note.target, Request::Note { note: value })
        }
        Verb::Status(target) => (target, Request::Status),
    };
    client::ask(&absolute(&target.state_dir)?, &request)
}

impl Start {
    fn into_options(self) -> Result<launch::Options> {
        Ok(launch::Options {
            state_dir: absolute(&self.target.state_dir)?,
            lease: self.lease,
            controller_pid: self.controller_pid,
        })
    }
}

impl Run {
    fn into_request(self) -> Result<(Target, Request)> {
        let mut env = Vec::with_capacity(self.env.len());
        for (index, pair) in self.env.iter().enumerate() {
            match pair.split_once('=') {
                Some((key, value)) if !key.is_empty() => env.push((key.to_owned(), value.to_owned())),
                // Without the text: it may be a secret.
                _ => bail!("--env number {} is not KEY=VALUE", index + 1),
            }
        }
        let request = RunRequest {
            name: self.name,
            cpus: self.cpus,
            memory_nodes: self.memory_nodes,
            netns: self.netns,
            chroot: self.chroot.as_deref().map(absolute).transpose()?,
            user: self.user,
            env,
            cwd: self.cwd,
            stdout: self.stdout.as_deref().map(absolute).transpose()?,
            stderr: self.stderr.as_deref().map(absolute).transpose()?,
            stop_signal: self.stop_signal,
            stop_timeout: self.stop_timeout,
            role: self.role,
            argv: self.argv,
        };
        Ok((self.target, Request::Run(Box::new(request))))
    }
}

impl Mount {
    fn into_request(self) -> Result<(Target, Request)> {
        let request = match self.kind {
            MountKind {
                bind: Some(paths), ..
            } => match paths.as_slice() {
                [source, destination] => Request::Bind {
                    source: absolute(source)?,
                    destination: absolute(destination)?,
                },
                _ => bail!("--bind takes SRC and DST"),
            },
            MountKind {
                proc: Some(destination),
                ..
            } => Request::Proc {
                destination: absolute(&destination)?,
            },
            MountKind {
                dev: Some(destination),
                ..
            } => Request::Dev {
                destination: absolute(&destination)?,
            },
            MountKind { .. } => bail!("nothing to mount; add --bind SRC DST, --proc DST or --dev DST"),
        };
        Ok((self.target, request))
    }
}

/// Makes a path absolute, because the daemon has another working directory.
fn absolute(path: &std::path::Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}", path.display()))
}
