//! The protocol of the control socket: one JSON request line and one JSON reply line per
//! connection.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use anyhow::bail;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

/// Longest request line in bytes.
pub const REQUEST_LIMIT: u64 = 1 << 20;

/// One command. Paths are absolute.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Start a process.
    Run(Box<RunRequest>),
    /// Wait for a process, at most `slice`.
    Wait { name: String, slice: Duration },
    /// Stop a process.
    Stop { name: String },
    /// Bind mount.
    Bind { source: PathBuf, destination: PathBuf },
    /// Mount proc.
    Proc { destination: PathBuf },
    /// Mount a small /dev.
    Dev { destination: PathBuf },
    /// Undo a mount.
    Unmount { destination: PathBuf },
    /// Create a network namespace.
    Netns {
        name: String,
        host_address: String,
        peer_address: String,
    },
    /// Move the interrupts of devices.
    Irqs { cpus: String, devices: Vec<String> },
    /// Remove a path at the end.
    Own { path: PathBuf },
    /// Merge into the note.
    Note { note: Value },
    /// The status document.
    Status,
    /// Stop and remove everything.
    End,
}

/// The options of `run`.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunRequest {
    pub name: String,
    pub cpus: Option<String>,
    #[serde(default)]
    pub memory_nodes: Option<String>,
    pub netns: Option<String>,
    pub chroot: Option<PathBuf>,
    pub user: Option<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub stdout: Option<PathBuf>,
    pub stderr: Option<PathBuf>,
    pub stop_signal: String,
    pub stop_timeout: Duration,
    pub role: Option<String>,
    pub argv: Vec<String>,
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
