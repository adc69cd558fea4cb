//! Checks that a pinned process stays where it was put: once a second (less often where that would take more than
//! 1/500 of the time), every thread of it and of its descendants,
//! by its allowed CPUs and the CPU it last ran on (field 39 of proc_pid_stat(5)). What a thread does between two
//! samples is not seen; allowed CPUs come from sched_getaffinity(2), which leaves out CPUs that are offline.

use std::fs;

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;

/// Descendants are looked up again every so many samples (and at each of the first ones).
const TREE_EVERY: u64 = 5;

/// What the samples saw. The counts are (sample, thread) pairs.
#[derive(Debug, Clone, Serialize)]
pub struct Placement {
    pub cpus: String,
    pub samples: u64,
    /// Most threads in one sample.
    pub threads: u64,
    /// Threads that were allowed to leave the set.
    pub outside_allowed: u64,
    /// Threads that last ran outside the set.
    pub outside_ran: u64,
    #[serde(skip)]
    tree: Vec<u32>,
}

impl Placement {
    /// No samples yet.
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
        let look_for_children = self.samples < TREE_EVERY || self.samples.is_multiple_of(TREE_EVERY);
        if look_for_children {
            self.tree = vec![process.pid];
        }
        let mut threads = 0;
        let mut next = 0;
        while let Some(&pid) = self.tree.get(next) {
            next += 1;
            for thread in threads_of(pid) {
                threads += u64::from(self.check(pid, thread, cpus));
                if look_for_children {
                    self.tree.extend(children_of(pid, thread));
                }
            }
        }
        self.samples += 1;
        self.threads = self.threads.max(threads);
    }

    /// Whether the thread was still there.
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

/// proc_tid_children(5): space-separated pids of the children that this thread forked.
fn children_of(pid: u32, thread: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
