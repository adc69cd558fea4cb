//! Which wait a system call means, for a thread that blocks in it.
//!
//! The numbers are those of the architecture this was compiled for; 32-bit programs on a 64-bit kernel have others.

/// Why a thread of a watched role is off the CPU (`enum reason` of `sched.bpf.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Reason {
    BlockIo,
    Lock,
    Network,
    Sleep,
    Other,
    /// What it reads or writes decides: a socket, a file, or something else.
    ByFile,
}

/// The names of the reasons as states of a role, in the order of `enum reason`.
pub(super) const REASONS: [&str; 5] = ["block I/O", "lock", "network", "sleep", "other"];

/// All other calls mean `Other`: above all `io_getevents`, in which InnoDB's idle I/O threads wait for work. A wait for a device
/// is known by the kernel's own mark, `in_iowait`, whatever the call is.
static CALLS: &[(libc::c_long, Reason)] = &[
    (libc::SYS_read, Reason::ByFile),
    (libc::SYS_write, Reason::ByFile),
    (libc::SYS_readv, Reason::ByFile),
    (libc::SYS_writev, Reason::ByFile),
    // These wait for the journal of the file system, which bears no mark.
    (libc::SYS_fsync, Reason::BlockIo),
    (libc::SYS_fdatasync, Reason::BlockIo),
    (libc::SYS_sync, Reason::BlockIo),
    (libc::SYS_syncfs, Reason::BlockIo),
    (libc::SYS_sync_file_range, Reason::BlockIo),
    (libc::SYS_msync, Reason::BlockIo),
    (libc::SYS_pread64, Reason::BlockIo),
    (libc::SYS_pwrite64, Reason::BlockIo),
    (libc::SYS_preadv, Reason::BlockIo),
    (libc::SYS_pwritev, Reason::BlockIo),
    (libc::SYS_preadv2, Reason::BlockIo),
    (libc::SYS_pwritev2, Reason::BlockIo),
    (libc::SYS_fallocate, Reason::BlockIo),
    (libc::SYS_ftruncate, Reason::BlockIo),
    (libc::SYS_truncate, Reason::BlockIo),
    (libc::SYS_unlinkat, Reason::BlockIo),
    (libc::SYS_renameat2, Reason::BlockIo),
    (libc::SYS_io_submit, Reason::BlockIo),
    (libc::SYS_futex, Reason::Lock),
    (libc::SYS_futex_waitv, Reason::Lock),
    (libc::SYS_semop, Reason::Lock),
    (libc::SYS_semtimedop, Reason::Lock),
    (libc::SYS_flock, Reason::Lock),
    (libc::SYS_fcntl, Reason::Lock),
    (libc::SYS_recvfrom, Reason::Network),
    (libc::SYS_recvmsg, Reason::Network),
    (libc::SYS_recvmmsg, Reason::Network),
    (libc::SYS_sendto, Reason::Network),
    (libc::SYS_sendmsg, Reason::Network),
    (libc::SYS_sendmmsg, Reason::Network),
    (libc::SYS_connect, Reason::Network),
    (libc::SYS_accept, Reason::Network),
    (libc::SYS_accept4, Reason::Network),
    (libc::SYS_ppoll, Reason::Network),
    (libc::SYS_pselect6, Reason::Network),
    (libc::SYS_epoll_pwait, Reason::Network),
    (libc::SYS_epoll_pwait2, Reason::Network),
    (libc::SYS_nanosleep, Reason::Sleep),
    (libc::SYS_clock_nanosleep, Reason::Sleep),
];

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
static OLD_CALLS: &[(libc::c_long, Reason)] = &[
    (libc::SYS_poll, Reason::Network),
    (libc::SYS_select, Reason::Network),
    (libc::SYS_epoll_wait, Reason::Network),
    (libc::SYS_unlink, Reason::BlockIo),
    (libc::SYS_rename, Reason::BlockIo),
];
#[cfg(not(target_arch = "x86_64"))]
static OLD_CALLS: &[(libc::c_long, Reason)] = &[];

/// Writes the reason of every call to its number.
pub(super) fn fill(reasons: &mut [u8]) {
    reasons.fill(Reason::Other as u8);
    for (number, reason) in CALLS.iter().chain(OLD_CALLS) {
        if let Some(place) = reasons.get_mut(*number as usize) {
            *place = *reason as u8;
        }
    }
}
