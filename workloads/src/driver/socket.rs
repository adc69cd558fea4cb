//! The socket of a connection whose packets this program writes and reads itself: one send per statement, and a wait in which other
//! tasks of the thread run.

use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

use super::Failure;
use super::Row;
use super::wire::Dialect;
use super::wire::MOST;
use super::wire::reply::Command;
use super::wire::reply::Reply;
use super::wire::reply::Said;
use crate::tasks;

/// CR_SERVER_GONE_ERROR, CR_SERVER_LOST and CR_MALFORMED_PACKET of errmsg.h.
const GONE: (u32, &str) = (2006, "MySQL server has gone away");
const LOST: (u32, &str) = (2013, "Lost connection to MySQL server during query");
const MALFORMED: u32 = 2027;

/// A connected socket after login.
#[derive(Debug)]
pub struct Socket {
    descriptor: BorrowedFd<'static>,
    dialect: Dialect,
    /// The beginning of a packet whose end has not come yet.
    left: Vec<u8>,
}

impl Socket {
    /// The descriptor must stay open as long as this value is used.
    pub fn new(descriptor: BorrowedFd<'static>, dialect: Dialect) -> Result<Self, Failure> {
        tasks::watch(descriptor).map_err(|error| lost(GONE, Some(&error)))?;
        Ok(Self {
            descriptor,
            dialect,
            left: Vec::new(),
        })
    }

    /// What was agreed on at login.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Sends a command and reads its whole reply; the rows are appended where they are wanted. The buffer goes back to the thread.
    pub fn exchange(
        &mut self,
        packet: Vec<u8>,
        command: Command,
        mut rows: Option<&mut Vec<Row>>,
    ) -> Result<Said, Failure> {
        // The number of the last packet of the command.
        let sent = (packet.len() / (MOST + 4)) as u8;
        self.send(packet)?;
        let mut reply = Reply::new(self.dialect, command, sent);
        loop {
            // No answer can be there yet.
            tasks::wait_readable();
            let mut room = tasks::take_room();
            let read = self.read(&mut room, &mut reply, rows.as_deref_mut());
            tasks::give_room(room);
            read?;
            if let Some(said) = reply.said() {
                return Ok(said);
            }
        }
    }

    /// Reads what is there.
    fn read(
        &mut self,
        room: &mut [u8],
        reply: &mut Reply,
        mut rows: Option<&mut Vec<Row>>,
    ) -> Result<(), Failure> {
        loop {
            let got = match receive(self.descriptor, room) {
                Ok(0) => return Err(lost(LOST, None)),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(LOST, Some(&error))),
            };
            let used = if self.left.is_empty() {
                let used = reply.feed(&room[..got], rows.as_deref_mut());
                used.map(|used| self.left.extend_from_slice(&room[used..got]))
            } else {
                self.left.extend_from_slice(&room[..got]);
                let used = reply.feed(&self.left, rows.as_deref_mut());
                used.map(|used| drop(self.left.drain(..used)))
            };
            used.map_err(|malformed| failure(MALFORMED, malformed.0))?;
            if reply.is_whole() && !self.left.is_empty() {
                return Err(failure(MALFORMED, "the server sent more than one reply"));
            }
            // A receive that did not fill the room has emptied the socket: epoll tells of what comes later.
            if reply.is_whole() || got < room.len() {
                return Ok(());
            }
        }
    }

    /// Sends a packet, in pieces if the socket does not take it at once, and gives the buffer back.
    pub fn send(&mut self, packet: Vec<u8>) -> Result<(), Failure> {
        let sent = self.transmit_all(&packet);
        tasks::give_buffer(packet);
        sent
    }

    fn transmit_all(&self, packet: &[u8]) -> Result<(), Failure> {
        let mut rest = packet;
        while !rest.is_empty() {
            match transmit(self.descriptor, rest) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tasks::wait_writable(self.descriptor).map_err(|error| lost(GONE, Some(&error)))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(GONE, Some(&error))),
            }
        }
        Ok(())
    }
}

fn receive(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    let (at, length) = (room.as_mut_ptr().cast(), room.len());
    // SAFETY: pointer and length describe `room`. libmysqlclient may have left the socket blocking, hence the flag.
    let got = unsafe { libc::recv(socket.as_raw_fd(), at, length, libc::MSG_DONTWAIT) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

fn transmit(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: pointer and length describe `bytes`.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn failure(errno: u32, message: &str) -> Failure {
    Failure {
        errno,
        sqlstate: "HY000".to_owned(),
        message: message.to_owned(),
    }
}

fn lost((errno, words): (u32, &str), error: Option<&io::Error>) -> Failure {
    match error {
        None => failure(errno, words),
        Some(error) => failure(errno, &format!("{words}: {error}")),
    }
}
