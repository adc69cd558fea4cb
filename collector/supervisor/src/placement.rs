//! Checks that a process stays on its CPUs, and keeps the readings of its memory (memory.rs). Samples every
//! thread of the process and its descendants once a second: its allowed CPUs and the CPU on which it last
//! ran (field 39 of proc_pid_stat(5)). After the first samples they are less frequent if they would use more
//! than 1/500 of the time; a process that starts during such a pause has its first samples at once, because
//! it may end before the next. Changes between two samples are not detected. Allowed CPUs come from
//! sched_getaffinity(2), which omits offline CPUs.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::memory::Memory;
use crate::memory::NodeSet;
use crate::memory::Schedule;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;

/// The first samples of a process are taken at once.
const FIRST_SAMPLES: u64 = 5;
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
    /// Absent if the host has one memory node and the process is not bound to it, or if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// When to read the memory; `None`: never.
    #[serde(skip)]
    pub schedule: Option<Schedule>,
    #[serde(skip)]
    bound: Option<NodeSet>,
    #[serde(skip)]
    set: CpuSet,
    #[serde(skip)]
    tree: Vec<u32>,
}

impl Placement {
    /// Totals without samples, of a process on these CPUs and bound to these memory nodes.
    pub fn new(set: CpuSet, bound: Option<NodeSet>) -> Self {
        Self {
            cpus: set.to_string(),
            samples: 0,
            threads: 0,
            outside_allowed: 0,
            outside_ran: 0,
            memory: None,
            schedule: Schedule::new(bound.as_ref()),
            bound,
            set,
            tree: Vec::new(),
        }
    }

    /// True until the first samples are taken.
    pub fn is_new(&self) -> bool {
        self.samples < FIRST_SAMPLES
    }

    /// Takes one sample of the process and its descendants.
    pub fn sample(&mut self, process: ProcessId) {
        if !process.is_alive() {
            return;
        }
        let find_children = self.is_new() || self.samples.is_multiple_of(TREE_EVERY);
        if find_children {
            self.tree = vec![process.pid];
        }
        let mut threads = 0;
        let mut next = 0;
        while let Some(&pid) = self.tree.get(next) {
            next += 1;
            for thread in threads_of(pid) {
                threads += u64::from(self.check(pid, thread));
                if find_children {
                    self.tree.extend(children_of(pid, thread));
                }
            }
        }
        self.samples += 1;
        self.threads = self.threads.max(threads);
    }

    /// The process and its descendants at the last search.
    pub fn tree(&self, process: ProcessId) -> Vec<u32> {
        if self.tree.is_empty() {
            vec![process.pid]
        } else {
            self.tree.clone()
        }
    }

    /// Stores a reading of memory, unless an earlier one is larger.
    pub fn store(&mut self, nodes: BTreeMap<u32, u64>) {
        let total = |nodes: &BTreeMap<u32, u64>| nodes.values().sum::<u64>();
        let earlier = self.memory.as_ref().map_or(0, |memory| total(&memory.nodes));
        if total(&nodes) > earlier {
            let bound = self.bound.map(|bound| bound.to_string());
            self.memory = Some(Memory { nodes, bound });
        }
    }

    /// Checks one thread; false if it has exited.
    fn check(&mut self, pid: u32, thread: u32) -> bool {
        let Some(stat) = read_stat(&format!("/proc/{pid}/task/{thread}/stat")) else {
            return false;
        };
        let Ok(allowed) = CpuSet::of_thread(thread) else {
            return false;
        };
        if stat.state == b'Z' {
            return false;
        }
        self.outside_ran += u64::from(!self.set.contains(stat.processor));
        self.outside_allowed += u64::from(!allowed.is_within(&self.set));
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
