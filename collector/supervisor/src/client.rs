//! The caller's side of the control socket.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::net::sockopt::socket_peercred;
use serde_json::Value;
use serde_json::json;

use crate::cleanup;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;
use crate::protocol::Reply;
use crate::protocol::Request;
use crate::state_dir::StateDir;

/// How often `end` looks at a supervisor that has the lock but no socket.
const LOOK: Duration = Duration::from_millis(20);
/// How long two processes that have let go of their lock may take to exit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one request and prints the answer.
pub fn ask(path: &Path, request: &Request) -> Result<()> {
    let dir = StateDir::open(path)?.ok_or_else(|| absent(path, None))?;
    let stream = dir.connect().map_err(|_| absent(path, Some(&dir)))?;
    let reply = send(&stream, request)
        .with_context(|| format!("the supervisor at {} went away while answering", path.display()))?;
    print(&reply.into_result()?)
}

/// Ends the supervisor and returns when its last process is gone. One that has gone already is no error; what it left
/// if it was killed is removed here.
pub fn end(path: &Path) -> Result<()> {
    let Some(dir) = StateDir::open(path)? else {
        return print(&json!({"ended": null, "was_running": false}));
    };
    let lock = dir.open_lock()?;
    let mut processes = Vec::new();
    let reply = loop {
        if let Ok(stream) = dir.connect() {
            processes = daemon_and_guard(&stream);
            break Some(send(&stream, &Request::End));
        }
        if lock.try_take()? {
            break None;
        }
        // It holds the lock without a socket: it is just starting or just ending.
        thread::sleep(LOOK);
    };
    // The guard and the daemon share this lock until the last of them has exited.
    lock.wait()?;
    // A process lets go of its files before its namespaces, and with them the mounts.
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && processes.iter().any(|process| process.is_alive()) {
        thread::sleep(Duration::from_millis(1));
    }
    // Without an answer it was already exiting, or was killed.
    if let Some(Ok(reply)) = reply {
        return print(&reply.into_result()?);
    }
    let ended = ended_reason(&dir);
    let cleaned = cleanup::remove_what_was_left(&dir, &[])?;
    if !dir.is_there() {
        dir.remove_empty_parent();
    }
    print(&json!({"ended": ended, "was_running": false, "cleaned": cleaned}))
}

/// Prints one line; a closed pipe is an error, not a panic.
pub fn print(value: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{value}").context("cannot print the answer")
}

/// The process that listens, and its parent.
fn daemon_and_guard(stream: &UnixStream) -> Vec<ProcessId> {
    let Ok(peer) = socket_peercred(stream) else {
        return Vec::new();
    };
    let daemon = peer.pid.as_raw_nonzero().get().unsigned_abs();
    let guard = read_stat(&format!("/proc/{daemon}/stat")).map(|stat| stat.parent);
    // The guard may have been killed; then the parent is init, or a subreaper of somebody else's.
    let is_ours = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/exe")).ok() == fs::read_link(format!("/proc/{daemon}/exe")).ok()
    };
    [Some(daemon), guard.filter(is_ours)]
        .into_iter()
        .flatten()
        .filter_map(ProcessId::of)
        .collect()
}

fn send(stream: &UnixStream, request: &Request) -> Result<Reply> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    (&mut &*stream).write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        bail!("no answer");
    }
    serde_json::from_str(&answer).context("not understood; are both sides of one version?")
}

fn absent(path: &Path, dir: Option<&StateDir>) -> anyhow::Error {
    let before = match dir.and_then(ended_reason) {
        Some(reason) => format!(" (the last one ended: {reason})"),
        None => String::new(),
    };
    let dir = path.display();
    anyhow::anyhow!(
        "no supervisor at {dir}{before}; start one with `loadprint-supervise start --state {dir}`"
    )
}

/// Why the supervisor that was here ended, from its status.json.
fn ended_reason(dir: &StateDir) -> Option<String> {
    let status: Value = dir.read_json("status.json").ok()??;
    Some(status.get("ended")?.as_str()?.to_owned())
}
