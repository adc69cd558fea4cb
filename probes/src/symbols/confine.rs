//! Gives up all privileges before a child reads the files of a watched process.

use std::env::consts::ARCH;
use std::io;

use rustix::process;
use rustix::thread;
use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;

/// Bytes of memory: a table of four million symbols, twice, and this program.
const MEMORY: u64 = 512 << 20;
/// Seconds of CPU time.
const CPU: u64 = 5;
/// User IDs for processes without an account (systemd's `DynamicUser=`): first, and how many.
const USERS: (u32, u32) = (61_184, 4_336);

/// What the system calls of a child may be. Memory must be anonymous and not executable: no file is
/// mapped, which would end the child where another process truncates it.
fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let has = |argument, bits: i32, wanted: i32| {
        let operator = SeccompCmpOp::MaskedEq(bits as u64);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, wanted as u64)
    };
    let not_executable = || has(2, libc::PROT_EXEC, 0);
    let any = [
        libc::SYS_brk,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_fstat,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_lseek,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_newfstatat,
        libc::SYS_pread64,
        libc::SYS_read,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sendmsg,
        libc::SYS_sigaltstack,
        libc::SYS_statx,
        libc::SYS_write,
    ];
    let anonymous = SeccompRule::new(vec![
        has(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?,
        not_executable()?,
    ])?;
    let rules = any
        .into_iter()
        .map(|call| (call, vec![]))
        .chain([
            (libc::SYS_mmap, vec![anonymous]),
            (
                libc::SYS_mprotect,
                vec![SeccompRule::new(vec![not_executable()?])?],
            ),
        ])
        .collect();
    let architecture = ARCH.try_into()?;
    SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        architecture,
    )?
    .try_into()
}

/// Leaves this process nothing but its open files, memory and CPU time.
///
/// A process with root's privileges gets a user ID that no account and no other reader has. One
/// without them keeps its own.
///
/// # Errors
/// When the kernel refuses any part: then nothing may be read.
pub fn confine() -> io::Result<()> {
    let limits = [
        (process::Resource::As, MEMORY),
        (process::Resource::Cpu, CPU),
        (process::Resource::Core, 0),
        (process::Resource::Fsize, 0),
    ];
    for (resource, limit) in limits {
        let limit = Some(limit);
        process::setrlimit(
            resource,
            process::Rlimit {
                current: limit,
                maximum: limit,
            },
        )?;
    }
    if process::geteuid().is_root() {
        let (first, count) = USERS;
        let id = first + process::getpid().as_raw_nonzero().get().cast_unsigned() % count;
        let (user, group) = (process::Uid::from_raw(id), process::Gid::from_raw(id));
        thread::set_thread_groups(&[])?;
        thread::set_thread_res_gid(group, group, group)?;
        thread::set_thread_res_uid(user, user, user)?;
    }
    let none = thread::CapabilitySet::empty();
    thread::set_capabilities(
        None,
        thread::CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    // After the change of the user, which resets it.
    process::set_parent_process_death_signal(Some(process::Signal::KILL))?;
    thread::set_no_new_privs(true)?;
    let filter = filter().map_err(io::Error::other)?;
    seccompiler::apply_filter(&filter).map_err(io::Error::other)
}
