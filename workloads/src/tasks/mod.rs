//! Many connections on few threads: the code of each connection is a task with a stack of its own, and one thread runs many tasks.
//! A task reads like the code of a thread; where a thread would block, it is suspended until epoll(7), a timer or another thread wakes it.
//! The functions here are called from inside a task. A task may be resumed for no reason: whoever suspends it looks again.

mod buffers;
mod condvar;
mod hub;
#[cfg(test)]
mod tests;
mod thread;
mod waiters;

use std::io;
use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::Duration;

pub use condvar::Condvar;
use loadprint_recording::clock::monotonic_ns;
pub use thread::run;
pub use waiters::Waiters;

/// Bytes taken from a socket at once; the reply of a point select has 250.
const ROOM: usize = 64 * 1024;

/// True for code that runs as a task.
pub fn inside() -> bool {
    hub::current().is_some()
}

/// From now on the task is woken when something comes in on this socket; it ends when the socket is closed.
///
/// # Errors
/// Those of epoll_ctl(2).
pub fn watch(socket: BorrowedFd<'_>) -> io::Result<()> {
    hub::current().map_or(Ok(()), |hub| hub.watch(socket))
}

/// Suspends the task until something has come in on the watched socket since the last call, or the other end is closed.
pub fn wait_readable() {
    if let Some(hub) = hub::current() {
        hub.wait_readable();
    }
}

/// Suspends the task until the watched socket takes bytes again.
///
/// # Errors
/// Those of epoll_ctl(2).
pub fn wait_writable(socket: BorrowedFd<'_>) -> io::Result<()> {
    hub::current().map_or(Ok(()), |hub| hub.wait_writable(socket))
}

/// Sleeps, as a task or as a thread.
pub fn pause(length: Duration) {
    let Some(hub) = hub::current() else {
        return sleep(length);
    };
    let end_ns = monotonic_ns().saturating_add(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX));
    while monotonic_ns() < end_ns {
        hub.suspend_until(end_ns);
    }
}

/// Runs code that needs a large stack, and suspends nothing, on the stack of the thread.
pub fn on_thread_stack<R>(code: impl FnOnce() -> R) -> R {
    match hub::current() {
        Some(hub) => hub.on_thread_stack(code),
        None => call(code),
    }
}

/// Never inlined: the frame of the code would become part of the caller's, which may stand on the small stack of a task.
#[inline(never)]
fn call<R>(code: impl FnOnce() -> R) -> R {
    code()
}

/// A buffer of this thread, for a packet, with anything in it; outside of tasks a fresh one. Given back by [`give_buffer`].
pub fn take_buffer() -> Vec<u8> {
    hub::current().map(|hub| hub.packets.take()).unwrap_or_default()
}

/// See [`take_buffer`].
pub fn give_buffer(buffer: Vec<u8>) {
    if let Some(hub) = hub::current() {
        hub.packets.give(buffer);
    }
}

/// Room of this thread to receive into, [`ROOM`] bytes with anything in them. Given back by [`give_room`].
pub fn take_room() -> Vec<u8> {
    let mut room = hub::current().map(|hub| hub.rooms.take()).unwrap_or_default();
    // Only a new one is shorter.
    room.resize(ROOM, 0);
    room
}

/// See [`take_room`].
pub fn give_room(room: Vec<u8>) {
    if let Some(hub) = hub::current() {
        hub.rooms.give(room);
    }
}
