//! Processes as /proc shows them: identity that survives pid reuse, trees, and kills that hit nobody else.
//! Needs /proc of the host's pid namespace.

use std::collections::HashMap;
use std::fs;
use std::fs::File;
use std::io::Read;

use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use rustix::process::pidfd_open;
use rustix::process::pidfd_send_signal;
use serde::Deserialize;
use serde::Serialize;

/// A process, told apart from a later one with the same pid by its start time
/// (clock ticks after boot, field 22 of proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    pub start_time: u64,
}

/// The fields of /proc/PID/stat that are used here.
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
    /// The process that has this pid now; `None` when there is none or only its zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = read_stat(&format!("/proc/{pid}/stat"))?;
        (stat.state != b'Z').then_some(Self {
            pid,
            start_time: stat.start_time,
        })
    }

    /// Whether this very process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal to this very process; `false` when it is gone.
    pub fn signal(self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return false;
        };
        // The descriptor pins the process; comparing the start time after opening it closes the window for reuse.
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        self.is_alive() && pidfd_send_signal(&descriptor, signal).is_ok()
    }
}

/// Reads and parses a stat file of a process or thread; `None` when it is gone.
pub fn read_stat(path: &str) -> Option<Stat> {
    // One read: the kernel gives the whole line at once, and read_to_string would ask six times. The longest line
    // (52 fields of 20 digits, a name of 64 bytes) fits.
    let mut buffer = [0; 1280];
    let read = File::open(path).ok()?.read(&mut buffer).ok()?;
    parse_stat(&String::from_utf8_lossy(buffer.get(..read)?))
}

/// Parses `pid (comm) state ppid … starttime(22) … processor(39) …`; comm may hold blanks and parentheses.
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

/// All living descendants of a process, nearest first, without itself.
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
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (id, alive) in children.remove(&parent).unwrap_or_default() {
            open.push(id.pid);
            if alive {
                found.push(id);
            }
        }
    }
    found
}

/// Processes whose environment at exec held `key=value`.
pub fn with_environment(key: &str, value: &str) -> Vec<ProcessId> {
    let wanted = format!("{key}={value}");
    let holds = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ
                .split(|&byte| byte == 0)
                .any(|pair| pair == wanted.as_bytes())
        })
    };
    all_pids()
        .into_iter()
        .filter(holds)
        .filter_map(ProcessId::of)
        .collect()
}

/// The kernel's identity of this boot; pids and start times mean nothing in another one.
pub fn boot_id() -> std::io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_blanks_and_parentheses_in_its_name() {
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
    fn a_torn_stat_is_no_process() {
        assert_eq!(parse_stat("8 (a) S 1 8 8"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_wrong_start_time_is_another_process() {
        let me = ProcessId::of(std::process::id()).unwrap();
        let other = ProcessId {
            start_time: me.start_time + 1,
            ..me
        };
        assert!(me.is_alive());
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::KILL));
    }
}
