//! Limits time and memory of calls to the server. One thread checks four times a second in which
//! call each connection waits, and shuts down the socket of a call that exceeds a limit; the call
//! then returns an error.
//!
//! This costs a connection two stores per call. The read timeout of libmysqlclient would cost a
//! poll(2) per packet, and a server that sends a byte from time to time never reaches it.

use std::fs;
use std::ptr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use mysqlclient_sys as sys;

use crate::lock::lock;

/// Between two checks of all connections.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long calls may continue after a signal. After the same time again, the process exits even if
/// a call still waits.
const GRACE: Duration = Duration::from_secs(5);
/// Resident memory of this process, in bytes, above which results that are being read are
/// abandoned.
const MEMORY: u64 = 1 << 30;
/// Added to [`MEMORY`] for each connection: buffers, stack.
const MEMORY_PER_CONNECTION: u64 = 256 << 10;
/// Added for each prepared statement: two blocks of memory of the library, its own state, the values.
const MEMORY_PER_STATEMENT: u64 = 8 << 10;

/// Why the watchdog ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CutReason {
    /// It exceeded its time limit.
    Time = 1,
    /// The process used too much memory while the call read a result.
    Memory = 2,
    /// The run ends.
    End = 3,
}

/// Checks all connections of a process.
#[derive(Debug, Clone, Default)]
pub struct Watchdog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    entries: Mutex<Entries>,
    /// A call was ended because of a signal.
    interrupted: AtomicBool,
}

#[derive(Debug, Default)]
struct Entries {
    connections: Vec<Entry>,
    /// Time of a signal, and the exit status for it.
    signal: Option<(Instant, i32)>,
}

/// A connection at the last check.
#[derive(Debug)]
struct Entry {
    connection: Weak<Connection>,
    calls: u64,
    since: Instant,
}

/// State shared by a connection and the watchdog. It has its own cache lines, because each call
/// writes it.
#[derive(Debug)]
#[repr(align(128))]
struct Connection {
    /// Odd while a call waits for the server; only the connection writes it.
    calls: AtomicU64,
    /// Time limit of the current call in milliseconds; 0: none.
    limit_ms: AtomicU64,
    /// A [`CutReason`], or 0.
    cut_reason: AtomicU8,
    /// Number of prepared statements.
    statements: AtomicU64,
    handle: Mutex<Handle>,
}

#[derive(Debug)]
struct Handle(*mut sys::MYSQL);

// SAFETY: the watchdog only reads two fields of the handle, under the mutex that withdraws the
// handle before it is closed.
unsafe impl Send for Handle {}

impl Connection {
    fn shut_down(&self, reason: CutReason) {
        // The first reason is reported.
        self.cut_reason
            .compare_exchange(0, reason as u8, Relaxed, Relaxed)
            .ok();
        let handle = lock(&self.handle);
        if handle.0.is_null() {
            return;
        }
        // SAFETY: a handle that is stored here is not closed. Its thread may write these fields at
        // the same time: hence volatile reads of one word each, and the descriptor is used only
        // with a transport, which the library frees when it closes the descriptor.
        unsafe {
            let open = !ptr::read_volatile(&raw const (*handle.0).net.vio).is_null();
            let descriptor = ptr::read_volatile(&raw const (*handle.0).net.fd);
            // Zero until the library sets it.
            if open && descriptor > 0 {
                libc::shutdown(descriptor, libc::SHUT_RDWR);
            }
        }
    }
}

impl Watchdog {
    /// Starts the thread, which ends with the process.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start() -> Result<Self> {
        let watchdog = Self::default();
        let checker = watchdog.clone();
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                loop {
                    thread::sleep(INTERVAL);
                    checker.check(Instant::now(), resident_bytes);
                }
            })
            .context("start the watchdog thread")?;
        Ok(watchdog)
    }

    /// Adds a connection.
    pub fn watch(&self) -> WatchedConnection {
        let connection = Arc::new(Connection {
            calls: AtomicU64::new(0),
            limit_ms: AtomicU64::new(0),
            cut_reason: AtomicU8::new(0),
            statements: AtomicU64::new(0),
            handle: Mutex::new(Handle(ptr::null_mut())),
        });
        lock(&self.0.entries).connections.push(Entry {
            connection: Arc::downgrade(&connection),
            calls: 0,
            since: Instant::now(),
        });
        WatchedConnection(connection)
    }

    /// Ends all calls that wait for a server.
    pub fn shut_down_waiting(&self) {
        let entries = lock(&self.0.entries);
        let connections = entries
            .connections
            .iter()
            .filter_map(|entry| entry.connection.upgrade());
        connections
            .filter(|connection| connection.calls.load(Relaxed) % 2 == 1)
            .for_each(|connection| connection.shut_down(CutReason::End));
    }

    /// Handles a signal: calls that wait longer than a grace period are ended. If a call still
    /// waits, the process exits with `status`.
    pub fn interrupt(&self, status: i32) {
        lock(&self.0.entries)
            .signal
            .get_or_insert((Instant::now(), status));
    }

    /// Takes [`Watchdog::interrupt`] back.
    pub fn accept(&self) {
        lock(&self.0.entries).signal = None;
    }

    /// True if a call was ended because of [`Watchdog::interrupt`].
    pub fn interrupted(&self) -> bool {
        self.0.interrupted.load(Relaxed)
    }

    /// Checks all connections once.
    fn check(&self, now: Instant, resident: impl FnOnce() -> u64) {
        let mut entries = lock(&self.0.entries);
        let signal = entries.signal;
        let mut waiting = Vec::new();
        let mut statements = 0;
        entries.connections.retain_mut(|entry| {
            let Some(connection) = entry.connection.upgrade() else {
                return false;
            };
            statements += connection.statements.load(Relaxed);
            let calls = connection.calls.load(Relaxed);
            if calls != entry.calls {
                (entry.calls, entry.since) = (calls, now);
            } else if calls % 2 == 1 {
                waiting.push((connection, entry.since));
            }
            true
        });
        for (connection, since) in &waiting {
            let limit = connection.limit_ms.load(Relaxed);
            if limit > 0 && now.duration_since(*since) >= Duration::from_millis(limit) {
                connection.shut_down(CutReason::Time);
            }
        }
        let connections = entries.connections.len() as u64;
        let limit = MEMORY + connections * MEMORY_PER_CONNECTION + statements * MEMORY_PER_STATEMENT;
        // Read only while a call waits long: memory grows over a longer time than that.
        if !waiting.is_empty() && resident() > limit {
            waiting
                .iter()
                .for_each(|(connection, _)| connection.shut_down(CutReason::Memory));
        }
        let Some((received, status)) = signal.filter(|(received, _)| now.duration_since(*received) >= GRACE)
        else {
            return;
        };
        for (connection, since) in waiting {
            self.0.interrupted.store(true, Relaxed);
            connection.shut_down(CutReason::End);
            if now.duration_since(since.max(received)) >= 2 * GRACE {
                eprintln!(
                    "loadprint-load: interrupted while a call to the server does not return; results are not written"
                );
                // std's exit runs handlers that free memory which other threads use.
                // SAFETY: ends the process at once and touches no memory.
                unsafe { libc::_exit(status) };
            }
        }
    }
}

/// Resident memory of this process; 0 if /proc is not readable.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// A connection's side of the watchdog. Dropping it removes the connection.
#[derive(Debug)]
pub struct WatchedConnection(Arc<Connection>);

impl WatchedConnection {
    /// Sets the handle whose socket is shut down; null before the handle is closed.
    pub fn set_handle(&self, mysql: *mut sys::MYSQL) {
        *lock(&self.0.handle) = Handle(mysql);
    }

    /// Counts a prepared statement.
    pub fn prepared(&self) {
        self.0.statements.fetch_add(1, Relaxed);
    }

    /// Sets the time limit of all further calls.
    pub fn set_limit(&self, limit: Option<Duration>) {
        let milliseconds = limit.map_or(0, |limit| u64::try_from(limit.as_millis()).unwrap_or(0).max(1));
        self.0.limit_ms.store(milliseconds, Relaxed);
    }

    /// Runs a call that waits for the server.
    pub fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        let calls = self.0.calls.load(Relaxed);
        self.0.calls.store(calls + 1, Relaxed);
        let result = call();
        self.0.calls.store(calls + 2, Relaxed);
        result
    }

    /// The reason why the last call was ended; returned once.
    pub fn take_cut_reason(&self) -> Option<CutReason> {
        [CutReason::Time, CutReason::Memory, CutReason::End]
            .into_iter()
            .find(|cut| *cut as u8 == self.0.cut_reason.load(Relaxed))
            .inspect(|_| self.0.cut_reason.store(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: fn() -> u64 = || 1 << 20;
    const LARGE: fn() -> u64 = || 2 << 30;

    #[test]
    fn each_call_has_its_own_time_limit() {
        let watchdog = Watchdog::default();
        let watched = watchdog.watch();
        watched.set_limit(Some(Duration::from_secs(60)));
        let start = Instant::now();
        let at = |seconds| watchdog.check(start + Duration::from_secs(seconds), SMALL);
        watched.call(|| {
            at(0);
            at(59);
            assert_eq!(watched.take_cut_reason(), None);
        });
        watched.call(|| {
            at(61);
            at(120);
            assert_eq!(watched.take_cut_reason(), None);
            at(121);
            assert_eq!(watched.take_cut_reason(), Some(CutReason::Time));
        });
        watched.set_limit(None);
        watched.call(|| {
            at(200);
            at(1_000_000);
            assert_eq!(watched.take_cut_reason(), None);
        });
    }

    #[test]
    fn the_memory_limit_ends_only_waiting_calls() {
        let watchdog = Watchdog::default();
        let (reads, rests) = (watchdog.watch(), watchdog.watch());
        let now = Instant::now();
        reads.call(|| {
            watchdog.check(now, LARGE);
            watchdog.check(now, SMALL);
            assert_eq!(reads.take_cut_reason(), None);
            watchdog.check(now, LARGE);
        });
        assert_eq!(
            (reads.take_cut_reason(), rests.take_cut_reason()),
            (Some(CutReason::Memory), None)
        );
        // Memory that the statements need is not that of a result.
        (0..200_000).for_each(|_| rests.prepared());
        reads.call(|| {
            watchdog.check(now, LARGE);
            watchdog.check(now, LARGE);
        });
        assert_eq!(reads.take_cut_reason(), None);
    }

    #[test]
    fn a_signal_ends_calls_after_the_grace_period() {
        let watchdog = Watchdog::default();
        let watched = watchdog.watch();
        watchdog.interrupt(143);
        let received = lock(&watchdog.0.entries).signal.unwrap().0;
        watched.call(|| {
            watchdog.check(received, SMALL);
            watchdog.check(received + GRACE / 2, SMALL);
            assert!(!watchdog.interrupted() && watched.take_cut_reason().is_none());
            watchdog.check(received + GRACE, SMALL);
            assert!(watchdog.interrupted());
            assert_eq!(watched.take_cut_reason(), Some(CutReason::End));
            watchdog.accept();
            watchdog.check(received + 100 * GRACE, SMALL);
            assert_eq!(watched.take_cut_reason(), None);
        });
    }
}
