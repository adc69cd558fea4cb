//! Assigns a reason for being off the CPU to each system call in which a thread can block.
//!
//! The numbers are those of the architecture for which this is compiled; 32-bit programs on a
//! 64-bit kernel use others.

use crate::ebpf::skeletons::sched::types::reason as Reason;

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

/// The reason of all other calls is `OTHER`, above all of `io_getevents`, in which InnoDB's idle
/// I/O threads wait for work. The kernel marks a wait for a device with `in_iowait`, in any
/// call.
static CALLS: &[(libc::c_long, Reason)] = &[
    (libc::SYS_read, Reason::BY_FILE),
    (libc::SYS_write, Reason::BY_FILE),
    (libc::SYS_readv, Reason::BY_FILE),
    (libc::SYS_writev, Reason::BY_FILE),
    // These wait for the journal of the file system, which the kernel does not mark.
    (libc::SYS_fsync, Reason::BLOCK_IO),
    (libc::SYS_fdatasync, Reason::BLOCK_IO),
    (libc::SYS_sync, Reason::BLOCK_IO),
    (libc::SYS_syncfs, Reason::BLOCK_IO),
    (libc::SYS_sync_file_range, Reason::BLOCK_IO),
    (libc::SYS_msync, Reason::BLOCK_IO),
    (libc::SYS_pread64, Reason::BLOCK_IO),
    (libc::SYS_pwrite64, Reason::BLOCK_IO),
    (libc::SYS_preadv, Reason::BLOCK_IO),
    (libc::SYS_pwritev, Reason::BLOCK_IO),
    (libc::SYS_preadv2, Reason::BLOCK_IO),
    (libc::SYS_pwritev2, Reason::BLOCK_IO),
    (libc::SYS_fallocate, Reason::BLOCK_IO),
    (libc::SYS_ftruncate, Reason::BLOCK_IO),
    (libc::SYS_truncate, Reason::BLOCK_IO),
    (libc::SYS_unlinkat, Reason::BLOCK_IO),
    (libc::SYS_renameat2, Reason::BLOCK_IO),
    (libc::SYS_io_submit, Reason::BLOCK_IO),
    (libc::SYS_futex, Reason::LOCK),
    (libc::SYS_futex_waitv, Reason::LOCK),
    (libc::SYS_semop, Reason::LOCK),
    (libc::SYS_semtimedop, Reason::LOCK),
    (libc::SYS_flock, Reason::LOCK),
    (libc::SYS_fcntl, Reason::LOCK),
    (libc::SYS_recvfrom, Reason::NETWORK),
    (libc::SYS_recvmsg, Reason::NETWORK),
    (libc::SYS_recvmmsg, Reason::NETWORK),
    (libc::SYS_sendto, Reason::NETWORK),
    (libc::SYS_sendmsg, Reason::NETWORK),
    (libc::SYS_sendmmsg, Reason::NETWORK),
    (libc::SYS_connect, Reason::NETWORK),
    (libc::SYS_accept, Reason::NETWORK),
    (libc::SYS_accept4, Reason::NETWORK),
    (libc::SYS_ppoll, Reason::NETWORK),
    (libc::SYS_pselect6, Reason::NETWORK),
    (libc::SYS_epoll_pwait, Reason::NETWORK),
    (libc::SYS_epoll_pwait2, Reason::NETWORK),
    (libc::SYS_nanosleep, Reason::SLEEP),
    (libc::SYS_clock_nanosleep, Reason::SLEEP),
];

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
static OLD_CALLS: &[(libc::c_long, Reason)] = &[
    (libc::SYS_poll, Reason::NETWORK),
    (libc::SYS_select, Reason::NETWORK),
    (libc::SYS_epoll_wait, Reason::NETWORK),
    (libc::SYS_unlink, Reason::BLOCK_IO),
    (libc::SYS_rename, Reason::BLOCK_IO),
];
#[cfg(not(target_arch = "x86_64"))]
static OLD_CALLS: &[(libc::c_long, Reason)] = &[];

/// Writes the reason of each call to the element of its number.
pub(super) fn fill(reasons: &mut [u8]) {
    reasons.fill(Reason::OTHER.0 as u8);
    for (number, reason) in CALLS.iter().chain(OLD_CALLS) {
        if let Some(entry) = reasons.get_mut(*number as usize) {
            *entry = reason.0 as u8;
        }
    }
}
