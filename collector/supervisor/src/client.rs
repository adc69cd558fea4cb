//! Sends requests to the supervisor's control socket.

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
use crate::mounts;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;
use crate::protocol::Reply;
use crate::protocol::Request;
use crate::state_dir::StateDir;

/// How often `end` polls a supervisor that has the lock but no socket.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the two processes may take to exit after they released their lock.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends one request and prints the reply.
pub fn ask(path: &Path, request: &Request) -> Result<()> {
    let dir = StateDir::open(path)?.ok_or_else(|| absent(path, None))?;
    let stream = dir.connect().map_err(|_| absent(path, Some(&dir)))?;
    let reply = send(&stream, request)
        .with_context(|| format!("the supervisor at {} ended before it replied", path.display()))?;
    print(&reply.into_result()?)
}

/// Ends the supervisor and returns when its last process has exited. If it has ended before, this
/// is not an error; if it was killed, this removes its resources.
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
        // A lock without a socket: the supervisor is starting or ending.
        thread::sleep(POLL_INTERVAL);
    };
    // Guard and daemon share this lock until the last of them exits.
    lock.wait()?;
    // An exiting process closes its files before it leaves its namespaces and thereby its mounts.
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < deadline && processes.iter().any(|process| process.is_alive()) {
        thread::sleep(Duration::from_millis(1));
    }
    // Without a reply it was exiting already, or was killed.
    if let Some(Ok(reply)) = reply {
        return print(&reply.into_result()?);
    }
    let ended = ended_reason(&dir);
    mounts::enter_private_namespace()?;
    let cleaned = cleanup::remove_by_state(&dir, &[])?;
    if !dir.exists() {
        dir.remove_empty_parent();
    }
    print(&json!({"ended": ended, "was_running": false, "cleaned": cleaned}))
}

/// Prints one line; a closed pipe is an error, not a panic.
pub fn print(value: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{value}").context("cannot print the reply")
}

/// The process that listens on the socket, and its parent.
fn daemon_and_guard(stream: &UnixStream) -> Vec<ProcessId> {
    let Ok(peer) = socket_peercred(stream) else {
        return Vec::new();
    };
    let daemon = peer.pid.as_raw_nonzero().get().unsigned_abs();
    let guard = read_stat(&format!("/proc/{daemon}/stat")).map(|stat| stat.parent);
    // After a kill of the guard, the parent is init or another subreaper.
    let is_guard = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/exe")).ok() == fs::read_link(format!("/proc/{daemon}/exe")).ok()
    };
    [Some(daemon), guard.filter(is_guard)]
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
        bail!("no reply");
    }
    serde_json::from_str(&answer)
        .context("the reply cannot be parsed; check that both programs have the same version")
}

fn absent(path: &Path, dir: Option<&StateDir>) -> anyhow::Error {
    // One that owns its state directory leaves no reason.
    let last = match dir.and_then(ended_reason) {
        Some(reason) => format!("the last one ended: {reason}"),
        None => "none was started, or its lease expired: it had no message for longer than that".to_owned(),
    };
    let dir = path.display();
    anyhow::anyhow!(
        "no supervisor at {dir} ({last}); start one with `loadprint-supervise start --state {dir}`"
    )
}

/// Why the last supervisor of this directory ended, from its status.json.
fn ended_reason(dir: &StateDir) -> Option<String> {
    let status: Value = dir.read_json("status.json").ok()??;
    Some(status.get("ended")?.as_str()?.to_owned())
}
