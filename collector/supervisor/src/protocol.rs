//! The protocol of the control socket: one JSON request line and one JSON reply line per
//! connection.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use anyhow::bail;
use clap::Args;
use clap::Subcommand;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

/// Longest request line in bytes.
pub const REQUEST_LIMIT: u64 = 1 << 20;

// One command, as it is on the command line. The daemon has another working directory: paths are absolute. Clap would
// print a documentation comment of this type in place of the program's description, and so for the types below.
#[derive(Debug, Serialize, Deserialize, Subcommand)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Start a process, pinned before it executes
    Run(Box<RunRequest>),
    /// Wait for a process to end, for a limited time, and print its state
    Wait {
        /// The process's name
        name: String,
        /// Return after this time even if it is running. A wait renews the lease; keep it short on a
        /// remote target, where it may outlive its playbook
        #[arg(long = "for", default_value = "20s", value_parser = duration)]
        slice: Duration,
    },
    /// Send a process SIGTERM; kill its process tree after the stop timeout
    Stop {
        /// The process's name
        name: String,
    },
    /// Freeze processes with all that they forked; returns when they have stopped
    Freeze {
        /// The processes' names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Let frozen processes go on; `stop` and `end` do it first
    Thaw {
        /// The processes' names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Mount inside the supervisor's private mount namespace
    Mount(Mount),
    /// Create a network namespace with a veth pair
    Netns {
        /// The namespace's name in this supervisor
        name: String,
        /// Address and prefix length of the host's interface
        #[arg(long, value_name = "ADDRESS/LENGTH")]
        host_address: String,
        /// Address and prefix length of the interface in the namespace
        #[arg(long, value_name = "ADDRESS/LENGTH")]
        peer_address: String,
    },
    /// Move the interrupts of block devices and network interfaces to these CPUs until the supervisor ends
    Irqs {
        /// CPUs that shall serve the interrupts, like 0-3,8
        #[arg(long, value_name = "LIST")]
        cpus: String,
        /// Names as in /sys/class/block and /sys/class/net
        #[arg(required = true, value_name = "DEVICE")]
        devices: Vec<String>,
    },
    /// Remove this path and everything below it when the supervisor ends
    Own {
        /// An absolute path; it need not exist yet
        path: PathBuf,
    },
    /// Replace the note of status.json
    Note {
        /// A JSON object
        json: String,
    },
    /// Print the current status, as in status.json
    Status,
    /// Stop everything in reverse order, remove everything, and exit
    End,
}

// The options of `run`.
#[derive(Debug, Serialize, Deserialize, Args)]
pub struct RunRequest {
    /// Name of the process in this supervisor; reusable after the process has ended
    pub name: String,
    /// CPUs to pin it to, like 0-3,8
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Memory nodes to bind its memory to, like 0-1: it is killed rather than given memory of other nodes
    #[arg(long, value_name = "LIST")]
    pub memory_nodes: Option<String>,
    /// Network namespace created with `netns`
    #[arg(long, value_name = "NS")]
    pub netns: Option<String>,
    /// Root directory of the process
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    pub chroot: Option<PathBuf>,
    /// Numbers of its user and of its only group
    #[arg(long, value_name = "UID:GID")]
    pub user: Option<String>,
    /// Environment variable, in addition to PATH and LANG; nothing is inherited
    #[arg(long, value_name = "KEY=VALUE")]
    pub env: Vec<String>,
    /// Append its standard error to this file [default: DIR/NAME.stderr]
    #[arg(long, value_name = "FILE", value_parser = absolute)]
    pub stderr: Option<PathBuf>,
    /// Kill it if it has not stopped after this time
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub stop_timeout: Duration,
    /// Program and arguments. Other users can read them in /proc: store secrets in files
    #[arg(last = true, required = true)]
    pub argv: Vec<String>,
}

// The options of `mount`.
#[derive(Debug, Serialize, Deserialize, Args)]
#[group(required = true, multiple = false)]
pub struct Mount {
    /// Bind-mount SRC at DST (both must exist and be directories, or both files)
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"], value_parser = absolute)]
    pub bind: Option<Vec<PathBuf>>,
    /// Mount proc
    #[arg(long, value_name = "DST", value_parser = absolute)]
    pub proc: Option<PathBuf>,
    /// Mount a minimal /dev: null, zero, full, random, urandom, tty, shm and the fd links
    #[arg(long, value_name = "DST", value_parser = absolute)]
    pub dev: Option<PathBuf>,
}

/// A time like `20s`, `1m 30s`, or bare seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 20s or 2m"))
}

/// Makes a path absolute.
pub fn absolute(path: &str) -> std::io::Result<PathBuf> {
    std::path::absolute(path)
}

/// The reply: the JSON line to print, or the error message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The result.
    Ok(Value),
    /// The error message.
    Error(String),
}

impl Reply {
    /// The value, or the message as an error.
    pub fn into_result(self) -> Result<Value> {
        match self {
            Self::Ok(value) => Ok(value),
            Self::Error(message) => bail!(message),
        }
    }
}

impl From<Result<Value>> for Reply {
    fn from(result: Result<Value>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(error) => Self::Error(format!("{error:#}").replace('\n', "; ")),
        }
    }
}
