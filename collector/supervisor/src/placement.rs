//! Checks that a pinned process stays on its CPUs. Samples every thread of the process and its
//! descendants once a second, less often if that would use more than 1/500 of the time: its allowed
//! CPUs and the CPU on which it last ran (field 39 of proc_pid_stat(5)). Changes between two
//! samples are not detected. Allowed CPUs come from sched_getaffinity(2), which omits offline CPUs.

use std::fs;

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;

/// Descendants are searched at each of the first samples and at every fifth one.
const TREE_EVERY: u64 = 5;

/// Totals of the samples. The counts are (sample, thread) pairs.
#[derive(Debug, Clone, Serialize)]
pub struct Placement {
    pub cpus: String,
    pub samples: u64,
    /// The largest number of threads in one sample.
    pub threads: u64,
    /// Threads whose allowed CPUs include others than the set.
    pub outside_allowed: u64,
    /// Threads that last ran on a CPU outside the set.
    pub outside_ran: u64,
    #[serde(skip)]
    tree: Vec<u32>,
}

impl Placement {
    /// Totals without samples.
    pub fn new(cpus: &CpuSet) -> Self {
        let cpus = cpus.to_string();
        Self {
            cpus,
            samples: 0,
            threads: 0,
            outside_allowed: 0,
            outside_ran: 0,
            tree: Vec::new(),
        }
    }

    /// Takes one sample of the process and its descendants.
    pub fn sample(&mut self, process: ProcessId, cpus: &CpuSet) {
        if !process.is_alive() {
            return;
        }
        let find_children = self.samples < TREE_EVERY || self.samples.is_multiple_of(TREE_EVERY);
        if find_children {
            self.tree = vec![process.pid];
        }
        let mut threads = 0;
        let mut next = 0;
        while let Some(&pid) = self.tree.get(next) {
            next += 1;
            for thread in threads_of(pid) {
                threads += u64::from(self.check(pid, thread, cpus));
                if find_children {
                    self.tree.extend(children_of(pid, thread));
                }
            }
        }
        self.samples += 1;
        self.threads = self.threads.max(threads);
    }

    /// Checks one thread; false if it has exited.
    fn check(&mut self, pid: u32, thread: u32, cpus: &CpuSet) -> bool {
        let Some(stat) = read_stat(&format!("/proc/{pid}/task/{thread}/stat")) else {
            return false;
        };
        let Ok(allowed) = CpuSet::of_thread(thread) else {
            return false;
        };
        if stat.state == b'Z' {
            return false;
        }
        self.outside_ran += u64::from(!cpus.contains(stat.processor));
        self.outside_allowed += u64::from(!allowed.is_within(cpus));
        true
    }
}

fn threads_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The children that this thread forked (proc_tid_children(5)).
fn children_of(pid: u32, thread: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
