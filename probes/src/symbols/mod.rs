//! Reads the mappings and the symbols of watched processes in separate processes without privileges.
//!
//! A watched process chooses the files that it maps: an open may block, a file may be truncated while
//! it is read, a symbol may expand to gigabytes. The recorder reads none of them. It starts a helper,
//! which forks a child for each request; the child opens what it needs, gives up its user and its
//! capabilities, and only then reads (`helper.rs`). A child that crashes, hangs or uses too much costs
//! the answer to its request.

pub mod demangle;
pub mod elf;
pub mod helper;
pub mod maps;
mod open;

use std::cell::RefCell;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::event;
use rustix::io::Errno;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use elf::Description;
pub use elf::Dispatch;
pub use maps::Mapping;

/// The longest name of a symbol in bytes: expanded C++ templates have no limit.
pub const MAX_NAME: usize = 1000;

/// The longest answer: the table of functions of the largest file, or the longest names.
const MAX_REPLY: usize = 64 << 20;
const MAX_REQUEST: usize = 16 << 20;

/// The length of the longest beginning of `text` of up to `bytes` bytes.
pub fn boundary(text: &str, bytes: usize) -> usize {
    let is_boundary = |length: &usize| text.is_char_boundary(*length);
    (0..=bytes.min(text.len())).rev().find(is_boundary).unwrap_or(0)
}

/// What the helper does. Its modules are numbered by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The executable mappings of a process: `Vec<Mapping>`.
    Maps {
        /// Process.
        pid: u32,
    },
    /// Opens the files of mappings, each as the module of a number: `()`.
    Open {
        /// Process.
        pid: u32,
        /// Numbers and mappings.
        files: Vec<(u32, Mapping)>,
    },
    /// Reads an open module: `Description`, and addresses and sizes of its functions.
    Functions {
        /// Module.
        module: u32,
    },
    /// Finds the debug file of an open module and keeps it open as well: `()`, and addresses and
    /// sizes of its functions.
    DebugFile {
        /// Module.
        module: u32,
        /// A process that executes it.
        pid: u32,
        /// The path of the module in the mount namespace of this process.
        path: String,
        /// Its build ID in hexadecimal digits.
        build_id: String,
        /// The name in its section `.gnu_debuglink`.
        link: Option<String>,
        /// The address from which those of the functions count.
        base: u64,
    },
    /// The demangled names of functions of an open module: `Vec<Option<String>>`.
    Names {
        /// Module.
        module: u32,
        /// Virtual addresses, in ascending order.
        functions: Vec<u64>,
    },
    /// The function `dispatch_command` in the program of a process: `Option<Dispatch>`.
    Dispatch {
        /// Process.
        pid: u32,
    },
}

/// The answer to a request, as bytes of JSON (a `Result<T, String>`) and further bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    json: Vec<u8>,
    data: Vec<u8>,
}

impl Reply {
    fn new<T: Serialize>(value: T, data: Vec<u8>) -> Self {
        let json = serde_json::to_vec(&Ok::<T, String>(value)).unwrap_or_default();
        Self { json, data }
    }

    fn failure(reason: String) -> Self {
        let json = serde_json::to_vec(&Err::<(), String>(reason)).unwrap_or_default();
        Self { json, data: vec![] }
    }

    /// The value, or why there is none. The child that wrote it may be under the control of the
    /// watched process.
    fn value<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.json).unwrap_or_else(|error| Err(format!("invalid answer: {error}")))
    }

    /// The further bytes as pairs of numbers.
    pub fn pairs(&self) -> Vec<(u32, u32)> {
        let (numbers, _) = self.data.as_chunks::<4>();
        let (pairs, _) = numbers.as_chunks::<2>();
        let pairs = pairs.iter().map(|pair| pair.map(u32::from_le_bytes));
        pairs.map(Into::into).collect()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let lengths = [self.json.len() as u32, self.data.len() as u32];
        let mut bytes: Vec<u8> = lengths.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(&self.json);
        bytes.extend(&self.data);
        bytes
    }

    /// Takes a whole reply off the start of `bytes`; `None` if it is not complete.
    ///
    /// # Errors
    /// When it is longer than any reply.
    fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, String> {
        let (&[json, data, ..], _) = bytes.as_chunks::<4>() else {
            return Ok(None);
        };
        let [json, data] = [json, data].map(|length| u32::from_le_bytes(length) as usize);
        if json > MAX_REPLY || data > MAX_REPLY {
            return Err("an answer is too long".to_owned());
        }
        let end = 8 + json + data;
        let Some(body) = bytes.get(8..end) else {
            return Ok(None);
        };
        let reply = Self {
            json: body[..json].to_vec(),
            data: body[json..].to_vec(),
        };
        bytes.drain(..end);
        Ok(Some(reply))
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Answer<T> {
    /// Answered, with further bytes in the reply.
    Ready(T, Reply),
    /// Sent; the same request gets its answer later.
    Later,
    /// Not sent, because an earlier one has no answer yet.
    Busy,
    /// The reason why there is no answer and will be none.
    Failed(String),
}

/// The helper of one recorder.
#[derive(Clone, Debug)]
pub struct Symbols(Rc<RefCell<Client>>);

#[derive(Debug)]
struct Client {
    helper: Child,
    socket: UnixStream,
    received: Vec<u8>,
    outstanding: Option<Request>,
    /// The answer to a request that was not repeated yet.
    late: Option<(Request, Reply)>,
    /// The time that requests may still wait.
    allowance: Duration,
    /// Why the helper answers no longer.
    failed: Option<String>,
}

impl Symbols {
    /// Starts `program`, which calls [`helper::run`] when its first argument is `symbols`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, proc_root: &Path) -> io::Result<Self> {
        let (socket, of_helper) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let helper = Command::new(program)
            .arg("symbols")
            .arg(proc_root)
            .stdin(OwnedFd::from(of_helper))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are for the recorder, which needs the names at its end.
            .process_group(0)
            .spawn()?;
        Ok(Self(Rc::new(RefCell::new(Client {
            helper,
            socket,
            received: vec![],
            outstanding: None,
            late: None,
            allowance: Duration::ZERO,
            failed: None,
        }))))
    }

    /// The process ID of the helper.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.borrow().helper.id()
    }

    /// Sets the time that all further requests may wait together.
    pub fn allow(&self, time: Duration) {
        self.0.borrow_mut().allowance = time;
    }

    /// Sends a request and waits for the answer, within the allowed time.
    pub fn ask<T: DeserializeOwned>(&self, request: &Request) -> Answer<T> {
        let mut client = self.0.borrow_mut();
        if let Some(reason) = &client.failed {
            return Answer::Failed(reason.clone());
        }
        let started = Instant::now();
        let until = started + client.allowance;
        let reply = client.exchange(request, until);
        client.allowance = client.allowance.saturating_sub(started.elapsed());
        match reply {
            Err(reason) => {
                client.failed = Some(reason.clone());
                Answer::Failed(reason)
            }
            Ok(None) if client.outstanding.as_ref() == Some(request) => Answer::Later,
            Ok(None) => Answer::Busy,
            Ok(Some(reply)) => match reply.value() {
                Ok(value) => Answer::Ready(value, reply),
                Err(reason) => Answer::Failed(reason),
            },
        }
    }
}

impl Client {
    /// The reply to a request, or `None` if none arrives in time; the request is then outstanding,
    /// unless an earlier one still is.
    fn exchange(&mut self, request: &Request, until: Instant) -> Result<Option<Reply>, String> {
        if let Some(earlier) = self.outstanding.take() {
            match self.receive(until)? {
                None => {
                    self.outstanding = Some(earlier);
                    return Ok(None);
                }
                Some(reply) => self.late = Some((earlier, reply)),
            }
        }
        if let Some((_, reply)) = self.late.take_if(|(of, _)| of == request) {
            return Ok(Some(reply));
        }
        self.send(request)?;
        let reply = self.receive(until)?;
        if reply.is_none() {
            self.outstanding = Some(request.clone());
        }
        Ok(reply)
    }

    /// Sends a request. The helper waits for it, unless it is stopped.
    fn send(&mut self, request: &Request) -> Result<(), String> {
        let json = serde_json::to_vec(request).map_err(|error| error.to_string())?;
        let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
        bytes.extend(json);
        let until = Instant::now() + self.allowance.max(Duration::from_millis(100));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !wait(&self.socket, event::PollFlags::OUT, until) {
                        return Err("the helper that reads symbols does not respond".to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("the helper that reads symbols has ended: {error}")),
            }
        }
        Ok(())
    }

    /// The next reply, or `None` if it does not arrive in time.
    fn receive(&mut self, until: Instant) -> Result<Option<Reply>, String> {
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(reply) = Reply::take(&mut self.received)? {
                return Ok(Some(reply));
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err("the helper that reads symbols has ended".to_owned()),
                Ok(length) => self.received.extend(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !wait(&self.socket, event::PollFlags::IN, until) {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("the helper that reads symbols has ended: {error}")),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It ends at the end of its input, unless it is stopped. Closing a file of its modules can block
        // it for good, so its end is not awaited for long.
        drop(self.socket.shutdown(Shutdown::Both));
        let has_ended = |helper: &mut Child| !matches!(helper.try_wait(), Ok(None));
        for _ in 0..100 {
            if has_ended(&mut self.helper) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        drop(self.helper.kill());
        has_ended(&mut self.helper);
    }
}

/// Waits until `file` is ready or `until` has passed; returns whether it is ready.
fn wait(file: impl AsFd, events: event::PollFlags, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = event::Timespec::try_from(left).unwrap_or_default();
        match event::poll(&mut [event::PollFd::new(&file, events)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_is_read_whole_and_its_length_is_limited() {
        let reply = Reply::new(7, vec![1, 0, 0, 0, 0, 1, 0, 0, 9]);
        let whole = reply.to_bytes();
        for length in 0..whole.len() {
            let mut bytes = whole[..length].to_vec();
            assert_eq!(Reply::take(&mut bytes), Ok(None), "{length}");
        }
        let mut bytes = [&whole[..], b"next"].concat();
        let taken = Reply::take(&mut bytes).unwrap().unwrap();
        assert_eq!((bytes.as_slice(), taken.value()), (&b"next"[..], Ok(7)));
        assert_eq!(taken.pairs(), [(1, 256)]);
        let mut endless = [0xff; 8].to_vec();
        assert!(Reply::take(&mut endless).is_err());
        assert!(
            Reply::default()
                .value::<u32>()
                .unwrap_err()
                .contains("invalid answer")
        );
    }
}
