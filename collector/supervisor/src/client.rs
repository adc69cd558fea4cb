//! The caller's side of the control socket.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::Value;
use serde_json::json;

use crate::protocol::Reply;
use crate::protocol::Request;
use crate::state_dir::StateDir;

/// Sends one request and prints the answer.
pub fn ask(path: &Path, request: &Request) -> Result<()> {
    let dir = StateDir::open(path).map_err(|_| absent(path))?;
    let stream = dir.connect().map_err(|_| absent(path))?;
    print(&exchange(&stream, request, path)?)
}

/// Ends the supervisor and returns when its last process is gone; one that has gone already is no error.
pub fn end(path: &Path) -> Result<()> {
    let gone = || json!({"ended": ended_reason(path), "was_running": false});
    let Ok(dir) = StateDir::open(path) else {
        return print(&gone());
    };
    let lock = dir.open_lock()?;
    let reply = match dir.connect() {
        Ok(stream) => exchange(&stream, &Request::End, path),
        Err(_) => Ok(gone()),
    };
    // The guard and the daemon share this lock until the last of them has exited.
    lock.wait()?;
    print(&reply?)
}

/// Prints one line; a closed pipe is an error, not a panic.
pub fn print(value: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{value}").context("cannot print the answer")
}

fn exchange(stream: &UnixStream, request: &Request, path: &Path) -> Result<Value> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let went_away = || format!("the supervisor at {} went away while answering", path.display());
    (&mut &*stream).write_all(&line).with_context(went_away)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .with_context(went_away)?;
    if answer.is_empty() {
        bail!(went_away());
    }
    match serde_json::from_str(&answer).context("the answer of the supervisor is not understood")? {
        Reply::Ok(value) => Ok(value),
        Reply::Error(message) => bail!(message),
    }
}

fn absent(path: &Path) -> anyhow::Error {
    let before = match ended_reason(path) {
        Some(reason) => format!(" (the last one ended: {reason})"),
        None => String::new(),
    };
    let dir = path.display();
    anyhow::anyhow!(
        "no supervisor at {dir}{before}; start one with `loadprint-supervise start --state {dir}`"
    )
}

/// Why the supervisor that was here ended, from its status.json.
fn ended_reason(path: &Path) -> Option<String> {
    let text = std::fs::read(path.join("status.json")).ok()?;
    let status: Value = serde_json::from_slice(&text).ok()?;
    Some(status.get("ended")?.as_str()?.to_owned())
}
