//! Assigns a state to each system call in which a thread can block.
//!
//! The numbers are those of the architecture for which this is compiled; 32-bit programs on a
//! 64-bit kernel use others.

use crate::ebpf::skeletons::sched::types::decided_by as DecidedBy;
use crate::ebpf::skeletons::sched::types::direction as Direction;
use crate::ebpf::skeletons::sched::types::file_kind as FileKind;
use crate::ebpf::skeletons::sched::types::reason as Reason;
use crate::ebpf::skeletons::sched::types::state as State;

/// The names of the reasons.
pub(super) const REASONS: [&str; Reason::REASONS.0 as usize] = {
    let mut names = [""; Reason::REASONS.0 as usize];
    names[Reason::BLOCK_IO.0 as usize] = "block I/O";
    names[Reason::LOCK.0 as usize] = "lock";
    names[Reason::NETWORK.0 as usize] = "network";
    names[Reason::SLEEP.0 as usize] = "sleep";
    names[Reason::OTHER.0 as usize] = "other";
    names
};

const FUTEX: u32 = DecidedBy::BY_CONNECTION.0;
const LOCK: u32 = State::LOCK_WAIT.0;
const NETWORK: u32 = State::NETWORK_WAIT.0;
const SEND: u32 = State::SEND_WAIT.0;
const SLEEP: u32 = State::SLEEP_WAIT.0;
const RECEIVE: u32 = DecidedBy::BY_SOCKET.0;
const POLL: u32 = DecidedBy::BY_POLL.0;
const RESTART: u32 = DecidedBy::BY_RESTART.0;
const READ: u32 = DecidedBy::BY_READ.0;
const WRITE: u32 = DecidedBy::BY_WRITE.0;
const FILE_READ: u32 = DecidedBy::BY_FILE.0 + Direction::READ.0;
const FILE_WRITE: u32 = DecidedBy::BY_FILE.0 + Direction::WRITE.0;
const FILE_FLUSH: u32 = DecidedBy::BY_FILE.0 + Direction::FLUSH.0;
/// Calls without a descriptor of the file.
const OTHER_WRITE: u32 = other_file(Direction::WRITE);
const OTHER_FLUSH: u32 = other_file(Direction::FLUSH);

const fn other_file(direction: Direction) -> u32 {
    State::FILE_WAIT.0 + direction.0 * FileKind::FILE_KINDS.0 + FileKind::OTHER_FILE.0
}

/// The state of all other calls is `OTHER_WAIT`, above all of `io_getevents`, in which InnoDB's idle
/// I/O threads wait for work. The kernel marks a wait for a device with `in_iowait`, in any
/// call.
static CALLS: &[(libc::c_long, u32)] = &[
    (libc::SYS_read, READ),
    (libc::SYS_write, WRITE),
    (libc::SYS_readv, READ),
    (libc::SYS_writev, WRITE),
    // These wait for the journal of the file system, which the kernel does not mark.
    (libc::SYS_fsync, FILE_FLUSH),
    (libc::SYS_fdatasync, FILE_FLUSH),
    (libc::SYS_sync, OTHER_FLUSH),
    (libc::SYS_syncfs, OTHER_FLUSH),
    (libc::SYS_sync_file_range, FILE_FLUSH),
    (libc::SYS_msync, OTHER_FLUSH),
    (libc::SYS_pread64, FILE_READ),
    (libc::SYS_pwrite64, FILE_WRITE),
    (libc::SYS_preadv, FILE_READ),
    (libc::SYS_pwritev, FILE_WRITE),
    (libc::SYS_preadv2, FILE_READ),
    (libc::SYS_pwritev2, FILE_WRITE),
    (libc::SYS_fallocate, FILE_FLUSH),
    (libc::SYS_ftruncate, FILE_FLUSH),
    (libc::SYS_truncate, OTHER_FLUSH),
    (libc::SYS_unlinkat, OTHER_FLUSH),
    (libc::SYS_renameat2, OTHER_FLUSH),
    (libc::SYS_io_submit, OTHER_WRITE),
    (libc::SYS_futex, FUTEX),
    (libc::SYS_futex_waitv, FUTEX),
    (libc::SYS_semop, LOCK),
    (libc::SYS_semtimedop, LOCK),
    (libc::SYS_flock, LOCK),
    (libc::SYS_fcntl, LOCK),
    (libc::SYS_recvfrom, RECEIVE),
    (libc::SYS_recvmsg, RECEIVE),
    (libc::SYS_recvmmsg, RECEIVE),
    (libc::SYS_sendto, SEND),
    (libc::SYS_sendmsg, SEND),
    (libc::SYS_sendmmsg, SEND),
    (libc::SYS_connect, NETWORK),
    (libc::SYS_accept, NETWORK),
    (libc::SYS_accept4, NETWORK),
    (libc::SYS_ppoll, POLL),
    (libc::SYS_pselect6, NETWORK),
    (libc::SYS_epoll_pwait, NETWORK),
    (libc::SYS_epoll_pwait2, NETWORK),
    (libc::SYS_nanosleep, SLEEP),
    (libc::SYS_clock_nanosleep, SLEEP),
    (libc::SYS_restart_syscall, RESTART),
];

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
static OLD_CALLS: &[(libc::c_long, u32)] = &[
    (libc::SYS_poll, POLL),
    (libc::SYS_select, NETWORK),
    (libc::SYS_epoll_wait, NETWORK),
    (libc::SYS_unlink, OTHER_FLUSH),
    (libc::SYS_rename, OTHER_FLUSH),
];
#[cfg(not(target_arch = "x86_64"))]
static OLD_CALLS: &[(libc::c_long, u32)] = &[];

/// Writes the state of each call to the element of its number.
pub(super) fn fill(states: &mut [u8]) {
    states.fill(State::OTHER_WAIT.0 as u8);
    for (number, state) in CALLS.iter().chain(OLD_CALLS) {
        if let Some(entry) = states.get_mut(*number as usize) {
            *entry = *state as u8;
        }
    }
}
