//! Reads processes from /proc: identities that are safe against pid reuse. Needs the /proc of the host's pid
//! namespace.

use std::fs::File;
use std::io::Read;

/// A process; the start time (clock ticks after boot, field 22 of proc_pid_stat(5)) distinguishes
/// it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The threads of the process.
    pub threads: u32,
    pub start_time: u64,
    /// The CPU it last ran on.
    pub processor: u32,
}

impl ProcessId {
    /// The process that has this pid now; `None` if there is none or all its threads have exited. The main
    /// thread can be a zombie while others run, or still have the process's files and locks open.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = read_stat(&format!("/proc/{pid}/stat"))?;
        (stat.state != b'Z' || stat.threads > 1).then_some(Self {
            pid,
            start_time: stat.start_time,
        })
    }

    /// True if this process is running.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
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

/// Parses `pid (comm) state ppid … num_threads(20) … starttime(22) … processor(39) …`; comm may contain blanks and
/// parentheses.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let threads = fields.nth(20 - 5)?.parse().ok()?;
    let start_time = fields.nth(22 - 21)?.parse().ok()?;
    let processor = fields.nth(39 - 23)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        threads,
        start_time,
        processor,
    })
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

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
                threads: 1,
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
    }

    #[test]
    fn a_process_is_alive_while_one_of_its_threads_is() {
        let script = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(300,)).start(); \
                      ctypes.CDLL(None).pthread_exit(None)";
        let mut child = process::Command::new("/usr/bin/python3")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/stat", child.id());
        let stat = || read_stat(&path).unwrap();
        while stat().state != b'Z' {
            std::thread::yield_now();
        }
        assert_eq!(stat().threads, 2);
        let process = ProcessId::of(child.id()).unwrap();
        child.kill().unwrap();
        while process.is_alive() {
            std::thread::yield_now();
        }
        assert_eq!(stat().threads, 1);
        child.wait().unwrap();
    }
}
