//! Reads processes from /proc: identities that are safe against pid reuse, process trees, and
//! signals to exactly one process. Needs the /proc of the host's pid namespace.

use std::collections::HashMap;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;

use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use rustix::process::getuid;
use rustix::process::pidfd_open;
use rustix::process::pidfd_send_signal;
use serde::Deserialize;
use serde::Serialize;

/// A process; the start time (clock ticks after boot, field 22 of proc_pid_stat(5)) distinguishes
/// it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    pub start_time: u64,
}

/// Fields of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// R, S, D, Z, T …
    pub state: u8,
    pub parent: u32,
    pub start_time: u64,
    /// The CPU it last ran on.
    pub processor: u32,
}

impl ProcessId {
    /// The process that has this pid now; `None` if there is none or it is a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = read_stat(&format!("/proc/{pid}/stat"))?;
        (stat.state != b'Z').then_some(Self {
            pid,
            start_time: stat.start_time,
        })
    }

    /// True if this process is running.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal to this process; false if it has exited.
    pub fn signal(self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return false;
        };
        // The descriptor refers to one process; checking the start time after opening it excludes a
        // reused pid.
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        self.is_alive() && pidfd_send_signal(&descriptor, signal).is_ok()
    }
}

/// Reads and parses the stat file of a process or thread; `None` if it has exited.
pub fn read_stat(path: &str) -> Option<Stat> {
    // One read returns the whole line, for which read_to_string needs six. The longest line (52
    // fields of 20 digits, a name of 64 bytes) fits into the buffer.
    let mut buffer = [0; 1280];
    let read = File::open(path).ok()?.read(&mut buffer).ok()?;
    parse_stat(&String::from_utf8_lossy(buffer.get(..read)?))
}

/// Parses `pid (comm) state ppid … starttime(22) … processor(39) …`; comm may contain blanks and
/// parentheses.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(22 - 5)?.parse().ok()?;
    let processor = fields.nth(39 - 23)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        start_time,
        processor,
    })
}

/// Every pid in /proc.
pub fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// All running descendants of a process, without the process itself.
pub fn descendants(root: u32) -> Vec<ProcessId> {
    let mut children: HashMap<u32, Vec<(ProcessId, bool)>> = HashMap::new();
    for pid in all_pids() {
        if let Some(stat) = read_stat(&format!("/proc/{pid}/stat")) {
            let id = ProcessId {
                pid,
                start_time: stat.start_time,
            };
            children
                .entry(stat.parent)
                .or_default()
                .push((id, stat.state != b'Z'));
        }
    }
    let mut descendants = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (id, is_alive) in children.remove(&parent).unwrap_or_default() {
            parents.push(id.pid);
            if is_alive {
                descendants.push(id);
            }
        }
    }
    descendants
}

/// User IDs of people (login.defs(5), `UID_MIN` and `UID_MAX`).
const PEOPLE: RangeInclusive<u32> = 1000..=59_999;

/// Processes whose environment at exec contained `key=value`, without those of other people: reading
/// their memory blocks for good where they map a file of a file system that they serve (fuse(4)) over it.
pub fn with_environment(key: &str, value: &str) -> Vec<ProcessId> {
    let variable = format!("{key}={value}");
    let caller = getuid().as_raw();
    let has_variable = |pid: &u32| {
        let process = fs::metadata(format!("/proc/{pid}"));
        let is_own = process.is_ok_and(|process| process.uid() == caller || !PEOPLE.contains(&process.uid()));
        is_own
            && fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|&byte| byte == 0)
                    .any(|pair| pair == variable.as_bytes())
            })
    };
    all_pids()
        .into_iter()
        .filter(has_variable)
        .filter_map(ProcessId::of)
        .collect()
}

/// The kernel's ID of this boot; pids and start times are only valid within one boot.
pub fn boot_id() -> std::io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process;
    use std::process::Command;

    use super::*;

    /// Needs root.
    #[test]
    fn memory_of_other_people_is_not_read() {
        let mark = format!("{}", process::id());
        let start = |user: u32| {
            let mut command = Command::new("sleep");
            command.arg("600").env("LOADPRINT_TEST_MARK", &mark).uid(user);
            command.spawn().unwrap()
        };
        let mut children = [start(4711), start(0)];
        let found = with_environment("LOADPRINT_TEST_MARK", &mark);
        let pids: Vec<_> = found.iter().map(|process| process.pid).collect();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(pids, [children[1].id()]);
    }

    #[test]
    fn parses_a_name_with_blanks_and_parentheses() {
        // Linux 6.18, a program named `a) S 9` under `taskset -c 1`.
        let line = "27951 (a) S 9) R 27948 27948 20208 0 -1 4194304 178 0 1 0 0 0 0 0 20 0 1 0 245907 3133440 407 \
                    18446744073709551615 94363605397504 94363605417385 140723158969712 0 0 0 0 0 0 0 0 0 17 1 0 0 0 \
                    0 0 94363605433392 94363605435008 94364306030592 140723158973090 140723158973128 \
                    140723158973128 140723158974434 0
";
        let stat = parse_stat(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: b'R',
                parent: 27948,
                start_time: 245907,
                processor: 1
            }
        );
    }

    #[test]
    fn an_incomplete_stat_line_is_refused() {
        assert_eq!(parse_stat("8 (a) S 1 8 8"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn another_start_time_means_another_process() {
        let me = ProcessId::of(process::id()).unwrap();
        let other = ProcessId {
            start_time: me.start_time + 1,
            ..me
        };
        assert!(me.is_alive());
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::KILL));
    }
}
