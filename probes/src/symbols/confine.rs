//! Gives up all privileges before a child reads the files of a watched process.

use std::io;

use rustix::process;
use rustix::thread;

/// Bytes of memory: a table of four million symbols, twice, and this program.
const MEMORY: u64 = 512 << 20;
/// Seconds of CPU time.
const CPU: u64 = 5;
/// User IDs for processes without an account, the lower ones of systemd's `DynamicUser=` (61184 to
/// 65519): first, and how many. The playbooks' MySQL server has 64033.
const USERS: (u32, u32) = (61_184, 816);

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
        // A process that it forks would outlive its deadline.
        (process::Resource::Nproc, 0),
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
    Ok(())
}
