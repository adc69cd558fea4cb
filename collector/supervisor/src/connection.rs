//! Answers requests on the control socket, with one thread per connection. Requests that fork or
//! change kernel state are passed to the main thread; waits, stops, notes and status are handled
//! here, so that they do not block other callers.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use serde_json::Value;
use serde_json::json;

use crate::log;
use crate::protocol::REQUEST_LIMIT;
use crate::protocol::Reply;
use crate::protocol::Request;
use crate::state::Job;
use crate::state::Reason;
use crate::state::Shared;
use crate::status;
use crate::stop;
use crate::watch;

const STACK: usize = 256 * 1024;
/// Timeout of reading a request and of writing its reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a wait checks that its caller is connected.
const HANGUP_CHECK: Duration = Duration::from_millis(500);

/// Accepts connections until the process exits.
pub fn accept_all(shared: &Arc<Shared>, listener: &UnixListener, dir: &Arc<PathBuf>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Usually out of descriptors: wait until other connections close.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let (shared, dir) = (Arc::clone(shared), Arc::clone(dir));
        let spawned = thread::Builder::new()
            .name("request".into())
            .stack_size(STACK)
            .spawn(move || serve(&shared, &stream, &dir));
        if let Err(error) = spawned {
            log::line(&format!("cannot start a thread for a request: {error}"));
        }
    }
}

/// Suspends the lease while it exists; dropping it restarts the lease.
struct OpenRequest<'a>(&'a Shared);

impl<'a> OpenRequest<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.lock().open_requests += 1;
        Self(shared)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open_requests -= 1;
        state.last_request = Instant::now();
        drop(state);
        self.0.announce();
        self.0.wake_main();
    }
}

fn serve(shared: &Arc<Shared>, stream: &UnixStream, dir: &Path) {
    let Ok(request) = read_request(stream) else { return };
    let open = OpenRequest::new(shared);
    let reply = Reply::from(request.and_then(|request| answer(shared, request, stream, dir)));
    if let Ok(mut line) = serde_json::to_vec(&reply) {
        line.push(b'\n');
        // The caller may have disconnected; its request is done.
        drop((&mut &*stream).write_all(&line));
    }
    drop(open);
}

/// Reads a request. The outer error means that no request arrived, so there is no reply.
fn read_request(stream: &UnixStream) -> Result<Result<Request>> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut line = String::new();
    let read = BufReader::new(stream.take(REQUEST_LIMIT)).read_line(&mut line)?;
    if read == 0 {
        bail!("closed");
    }
    Ok(serde_json::from_str(&line)
        .context("the request cannot be parsed; check that both programs have the same version"))
}

fn answer(shared: &Arc<Shared>, request: Request, stream: &UnixStream, dir: &Path) -> Result<Value> {
    match request {
        Request::Status => Ok(status::document(&mut shared.lock(), dir)),
        Request::End => end(shared),
        Request::Wait { name, slice } => wait(shared, &name, slice, stream),
        Request::Note { json } => note(shared, &json),
        Request::Freeze { names } => freeze(shared, &names, true),
        Request::Thaw { names } => freeze(shared, &names, false),
        Request::Stop { name } => {
            let number = shared.lock().find(&name)?.number;
            watch::read_last(shared, number);
            stop::stop(shared, number);
            shared.lock().report(number)
        }
        request => {
            if let Some(reason) = shared.lock().ending {
                bail!(
                    "the supervisor is ending ({})",
                    json!(reason).as_str().unwrap_or_default()
                );
            }
            let (reply, answer) = sync_channel(1);
            shared.push_job(Job { request, reply });
            let reply = answer.recv();
            reply
                .context("the supervisor ended before it handled this request")?
                .into_result()
        }
    }
}

fn wait(shared: &Shared, name: &str, slice: Duration, stream: &UnixStream) -> Result<Value> {
    let deadline = Instant::now() + slice;
    let mut state = shared.lock();
    let number = state.find(name)?.number;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if !state.is_running(number) || left.is_zero() || hung_up(stream) {
            return state.report(number);
        }
        state = shared.wait_change(state, left.min(HANGUP_CHECK));
    }
}

/// Freezes or thaws all of the processes. `monotonic_ns` is when all had stopped or gone on.
fn freeze(shared: &Shared, names: &[String], frozen: bool) -> Result<Value> {
    let find = |name: &String| anyhow::Ok(Arc::clone(&shared.lock().find(name)?.group));
    let groups: Vec<_> = names.iter().map(find).collect::<Result<_>>()?;
    for group in groups {
        group.freeze(frozen)?;
    }
    let now = clock_gettime(ClockId::Monotonic);
    Ok(json!({"monotonic_ns": now.tv_sec * 1_000_000_000 + now.tv_nsec}))
}

fn hung_up(stream: &UnixStream) -> bool {
    let mut descriptors = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut descriptors, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn note(shared: &Shared, json: &str) -> Result<Value> {
    let Value::Object(note) = serde_json::from_str(json).context("the note is not JSON")? else {
        bail!("a note is a JSON object, like {{\"run\": 1, \"of\": 6}}")
    };
    let reply = json!({"note": note});
    shared.lock().note = note;
    Ok(reply)
}

fn end(shared: &Shared) -> Result<Value> {
    shared.begin_end(Reason::End);
    let mut state = shared.lock();
    while !state.ended {
        state = shared.wait_change(state, Duration::from_secs(1));
    }
    if !state.left.is_empty() {
        bail!("ended, but could not remove: {}", state.left.join("; "));
    }
    Ok(json!({"ended": state.ending, "was_running": true}))
}
