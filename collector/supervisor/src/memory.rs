//! Binds a process to memory nodes (numa(7)), and reads on which nodes its memory is.
//!
//! A reading of numa_maps walks the page tables of the process, which takes about 7 ms for each GB of 4 kB
//! pages and meanwhile blocks its mmap(2) and munmap(2). Therefore readings use at most 1/500 of the time, and
//! are at least 30 s apart after the first minute; `stop` adds one.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::anyhow;
use anyhow::ensure;
use loadprint_cpulist::CpuSet;
use serde::Serialize;

/// The nodes with memory; absent if the kernel has no NUMA.
const NODES: &str = "/sys/devices/system/node/has_memory";
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);
/// A reading that took a second is repeated after 500 s.
const SHARE: u32 = 500;

/// A set of memory nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeSet(CpuSet);

impl NodeSet {
    /// Parses a list and checks that all its nodes have memory.
    pub fn parse_present(text: &str) -> Result<Self> {
        let present = fs::read_to_string(NODES).map_err(|error| {
            anyhow!("memory nodes {text}: this kernel has no NUMA ({NODES}: {error}); omit --memory-nodes")
        })?;
        let parse = |text: &str| {
            let set = text.parse::<CpuSet>().ok();
            set.with_context(|| format!("memory node list `{text}` is not like 0-1,3"))
        };
        let (requested, present) = (parse(text)?, parse(present.trim())?);
        let missing = requested.without(&present);
        ensure!(
            missing.is_empty(),
            "memory nodes {text}: this host has no node {missing} with memory (nodes with memory: {present})"
        );
        Ok(Self(requested))
    }

    /// Binds the memory that the calling thread will allocate, and that of its children. The kernel silently
    /// omits nodes that a cpuset cgroup forbids, so the policy is read back; EINVAL if it differs.
    /// Async-signal-safe.
    pub fn bind_self(&self) -> io::Result<()> {
        // SAFETY: the kernel reads the given number of bits from the words.
        let result = unsafe {
            libc::syscall(
                libc::SYS_set_mempolicy,
                libc::MPOL_BIND,
                self.0.words.as_ptr(),
                self.0.words.len() * 64,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut mode = 0;
        let mut bound = [0_u64; CpuSet::WORDS];
        // SAFETY: the kernel writes an int, and at most the given number of bits to the words.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut mode,
                bound.as_mut_ptr(),
                bound.len() * 64,
                0_usize,
                0_usize,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if mode == libc::MPOL_BIND && bound == self.0.words {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The largest reading of a process tree.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// kB on each node.
    pub nodes: BTreeMap<u32, u64>,
    /// The nodes to which it is bound, in the list format.
    pub bound: Option<String>,
}

/// When to read a process tree next.
#[derive(Debug, Clone)]
pub struct Schedule {
    next: Instant,
    interval: Duration,
}

impl Schedule {
    /// The schedule of a new process; `None` if its memory is not bound and the host has one node.
    pub fn new(bound: Option<&NodeSet>) -> Option<Self> {
        let several = || {
            let present = fs::read_to_string(NODES).ok()?;
            Some(present.trim().parse::<CpuSet>().ok()?.cpus().nth(1).is_some())
        };
        (bound.is_some() || several() == Some(true)).then(|| Self {
            next: Instant::now(),
            interval: FIRST_INTERVAL,
        })
    }

    /// True if a reading is due.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Sets the time of the next reading, after one that took this long.
    pub fn after(&mut self, took: Duration) {
        self.next = Instant::now() + self.interval.max(took * SHARE);
        self.interval = (self.interval * 2).min(LONGEST_INTERVAL);
    }
}

/// Reads the memory of these processes, in kB by node.
pub fn read(pids: &[u32]) -> BTreeMap<u32, u64> {
    let mut nodes = BTreeMap::new();
    for pid in pids {
        // Unreadable: it has exited, or a security module forbids it.
        drop(add_process(*pid, &mut nodes));
    }
    nodes
}

fn add_process(pid: u32, nodes: &mut BTreeMap<u32, u64>) -> io::Result<()> {
    for line in BufReader::new(File::open(format!("/proc/{pid}/numa_maps"))?).lines() {
        add_mapping(&line?, nodes);
    }
    Ok(())
}

/// Adds the kB of one line of numa_maps (proc_pid_numa_maps(5)):
///
/// ```text
/// 7f0c40000000 bind:0 anon=2048 dirty=2048 active=0 N0=2040 N1=8 kernelpagesize_kB=4
/// ```
///
/// Omits mapped files: their pages are page cache, on the nodes of the processes that read them first. Shared
/// memory has the name of a deleted file.
fn add_mapping(line: &str, nodes: &mut BTreeMap<u32, u64>) {
    let is_file = |field: &str| field.starts_with("file=") && !field.ends_with("(deleted)");
    if line.split(' ').any(is_file) {
        return;
    }
    let page_kb = line
        .rsplit_once("kernelpagesize_kB=")
        .and_then(|(_, size)| size.trim().parse().ok());
    let Some(page_kb): Option<u64> = page_kb else {
        return;
    };
    for field in line.split(' ') {
        let pages = field.strip_prefix('N').and_then(|field| field.split_once('='));
        if let Some((Ok(node), Ok(pages))) = pages.map(|(node, pages)| (node.parse(), pages.parse::<u64>())) {
            *nodes.entry(node).or_default() += pages * page_kb;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_node_without_files() {
        // Linux 6.18 and, for huge pages and two nodes, the format of fs/proc/task_mmu.c.
        let maps = "\
561228183000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
56122818e000 default file=/usr/bin/head anon=1 dirty=1 active=0 N1=1 kernelpagesize_kB=4
5612281a0000 bind:0 heap anon=33 dirty=33 active=0 N0=30 N1=3 kernelpagesize_kB=4
7f0c40000000 bind:0 file=/anon_hugepage\\040(deleted) huge anon=5 dirty=5 N0=5 kernelpagesize_kB=2048
7f0c80000000 bind:0 file=/dev/zero\\040(deleted) dirty=2 active=0 N1=2 kernelpagesize_kB=4
7ffc3a5d2000 bind:0 stack anon=3 dirty=3 active=0 N0=3 kernelpagesize_kB=4
7ffc3a5f0000 bind:0
";
        let mut nodes = BTreeMap::new();
        for line in maps.lines() {
            add_mapping(line, &mut nodes);
        }
        assert_eq!(
            nodes,
            BTreeMap::from([(0, 33 * 4 + 5 * 2048), (1, 3 * 4 + 2 * 4)])
        );
    }

    #[test]
    fn readings_become_less_frequent_and_use_a_small_share_of_the_time() {
        let mut schedule = Schedule {
            next: Instant::now(),
            interval: FIRST_INTERVAL,
        };
        let mut wait = |took| {
            let begin = Instant::now();
            schedule.after(took);
            schedule.next - begin
        };
        assert!((1..2).contains(&wait(Duration::ZERO).as_secs()));
        assert!((2..3).contains(&wait(Duration::ZERO).as_secs()));
        assert!((500..510).contains(&wait(Duration::from_secs(1)).as_secs()));
        for _ in 0..5 {
            wait(Duration::ZERO);
        }
        assert!((30..31).contains(&wait(Duration::ZERO).as_secs()));
    }
}
