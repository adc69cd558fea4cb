//! Checks that a process stays on its CPUs, and keeps the readings of its memory (memory.rs). Samples every
//! thread of the process's group once a second: its allowed CPUs and the CPU on which it last ran (field 39 of
//! proc_pid_stat(5)). Changes between two samples are not detected. Allowed CPUs come from
//! sched_getaffinity(2), which omits offline CPUs.

use std::collections::BTreeMap;
use std::path::Path;

use loadprint_cpulist::CpuSet;
use loadprint_cpulist::small_files::numbers;
use serde::Serialize;

use crate::cpus;
use crate::memory::Memory;
use crate::memory::NodeSet;
use crate::memory::Schedule;
use crate::procfs::read_stat;

/// The first samples of a process are taken at once.
const FIRST_SAMPLES: u64 = 5;

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
    pub set: CpuSet,
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
        }
    }

    /// True until the first samples are taken.
    pub fn is_new(&self) -> bool {
        self.samples < FIRST_SAMPLES
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.threads = self.threads.max(sample.threads);
        self.outside_allowed += sample.outside_allowed;
        self.outside_ran += sample.outside_ran;
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
}

/// One sample of the threads of some processes.
#[derive(Debug, Default)]
pub struct Sample {
    threads: u64,
    outside_allowed: u64,
    outside_ran: u64,
}

impl Sample {
    /// Reads the threads of these processes. It does not return while one of them blocks the read.
    pub fn take(pids: &[u32], set: &CpuSet) -> Self {
        let mut sample = Self::default();
        for &pid in pids {
            for thread in numbers(Path::new(&format!("/proc/{pid}/task"))) {
                sample.check(pid, thread, set);
            }
        }
        sample
    }

    /// Checks one thread, unless it has exited.
    fn check(&mut self, pid: u32, thread: u32, set: &CpuSet) {
        let (stat, allowed) = (
            read_stat(&format!("/proc/{pid}/task/{thread}/stat")),
            cpus::of_thread(thread),
        );
        let (Some(stat), Ok(allowed)) = (stat, allowed) else {
            return;
        };
        if stat.state != b'Z' {
            self.threads += 1;
            self.outside_ran += u64::from(!set.contains(stat.processor));
            self.outside_allowed += u64::from(!allowed.is_within(set));
        }
    }
}
