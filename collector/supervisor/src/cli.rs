//! The command line: one verb per thing a run needs, each answering with one JSON line on stdout.

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
  loadprint-supervise run    --state /run/loadprint/one load --cpus 4-7 --netns load -- loadprint-load run oltp_read_write
  loadprint-supervise wait   --state /run/loadprint/one load --for 20s
  loadprint-supervise end    --state /run/loadprint/one

Any command renews the lease. Only root may write the directory that holds the state directory; `start` makes it (0700) if it
is missing. Keep it in memory (/run where that is a tmpfs, or /dev/shm/loadprint):
status.json is rewritten every second, and on a disk that is a write a second on the machine under test.
Errors are one line on stderr, with exit status 2.";

#[derive(Debug, Parser)]
#[command(name = "loadprint-supervise", version, about = "Own the processes, mounts and network namespaces of one run; remove them when the lease ends", after_help = EXAMPLES)]
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
    /// Wait for a process to end, for a slice of time, and say how it stands
    Wait(Wait),
    /// Send a process its stop signal; kill its tree when the stop timeout has passed
    Stop(Named),
    /// Mount inside the supervisor's private mount namespace
    Mount(Mount),
    /// Undo a mount made with `mount`
    Unmount(Unmount),
    /// Make a network namespace behind a veth pair
    Netns(Netns),
    /// Remove this path, with all below it, at the end
    Own(Own),
    /// Merge a JSON object into the note of status.json (null removes a key)
    Note(Note),
    /// Print what status.json holds, as of now
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
    /// How long the supervisor lives without hearing a command
    #[arg(long, default_value = "60s", value_parser = duration)]
    lease: Duration,
    /// End when this process is gone
    #[arg(long, value_name = "PID")]
    controller_pid: Option<u32>,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    target: Target,
    /// The process's name in this supervisor; may be used again once that process has ended
    name: String,
    /// CPUs it may run on, like 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Network namespace made with `netns`
    #[arg(long, value_name = "NS")]
    netns: Option<String>,
    /// Root directory of the process
    #[arg(long, value_name = "DIR")]
    chroot: Option<PathBuf>,
    /// User, and group after a colon; names are looked up inside the chroot
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Environment of the process, besides PATH, LANG and (with --user) HOME, USER; nothing else is inherited
    #[arg(long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Working directory, inside the chroot
    #[arg(long, value_name = "DIR", default_value = "/")]
    cwd: PathBuf,
    /// File its output is appended to [default: DIR/NAME.stdout]
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,
    /// File its errors are appended to [default: DIR/NAME.stderr]
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// Signal that asks it to stop
    #[arg(long, value_name = "SIGNAL", default_value = "TERM")]
    stop_signal: String,
    /// How long it may take to stop before it is killed
    #[arg(long, default_value = "60s", value_parser = duration)]
    stop_timeout: Duration,
    /// What it is to the run: server, load, recorder …; repeated in status.json
    #[arg(long)]
    role: Option<String>,
    /// Program and arguments. Other users can read them in /proc: secrets belong in files
    #[arg(last = true, required = true)]
    argv: Vec<String>,
}

#[derive(Debug, Args)]
struct Wait {
    #[command(flatten)]
    target: Target,
    /// The process's name
    name: String,
    /// Return after this time although it still runs. A wait holds the lease: on a remote target, where it may
    /// outlive its playbook, keep it short
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
    /// Make SRC visible at DST (both exist, both directories or both files)
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    bind: Option<Vec<PathBuf>>,
    /// Mount proc
    #[arg(long, value_name = "DST")]
    proc: Option<PathBuf>,
    /// Mount a small /dev: null, zero, full, random, urandom, tty, shm and the fd links
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
    /// Address and prefix length of the end in the host's namespace
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    host_address: String,
    /// Address and prefix length of the end inside the namespace
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    peer_address: String,
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

/// Parses the command line and does what it says.
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
                // The text is not repeated: it may be a secret.
                _ => bail!("--env number {} is not KEY=VALUE", index + 1),
            }
        }
        let request = RunRequest {
            name: self.name,
            cpus: self.cpus,
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
            MountKind { .. } => bail!("say what to mount: --bind SRC DST, --proc DST or --dev DST"),
        };
        Ok((self.target, request))
    }
}

/// The daemon's working directory is not the caller's.
fn absolute(path: &std::path::Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}", path.display()))
}
