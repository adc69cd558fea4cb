//! The executable mappings of the sampled processes.

use std::collections::HashMap;
use std::fs;

use loadprint_recording::clock::monotonic_ns;

use super::maps;
use super::maps::Mapping;
use crate::Host;

/// Time between two reads of the mappings of a process, in which new ones stay unknown: a stack
/// without frame pointers contains addresses that are in no mapping.
const READ_EVERY_NS: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Process {
    /// The program that it executes; 0 before its first sample.
    address_space: u64,
    mappings: Vec<Mapping>,
    read_ns: i64,
}

/// The processes by their ID.
#[derive(Debug)]
pub struct Processes {
    host: Host,
    known: HashMap<u32, Process>,
}

impl Processes {
    /// No processes.
    pub fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            known: HashMap::new(),
        }
    }

    /// Reads the mappings of new processes, which may exit before the next tick, and forgets those
    /// that have exited. Call it after the samples of a tick are taken.
    pub fn follow(&mut self, running: &[(String, u32)]) {
        self.known
            .retain(|known, _| running.iter().any(|(_, pid)| pid == known));
        for (_, pid) in running {
            if !self.known.contains_key(pid) {
                let process = Process::read(&self.host, *pid).unwrap_or_default();
                self.known.insert(*pid, process);
            }
        }
    }

    /// The mapping of an address in the program that a process executed at a sample.
    pub fn mapping(&mut self, pid: u32, address_space: u64, address: u64) -> Option<&Mapping> {
        let process = self.known.entry(pid).or_default();
        let is_new = process.address_space != address_space;
        if is_new || maps::find(&process.mappings, address).is_none() {
            let now = monotonic_ns();
            if is_new || now - process.read_ns >= READ_EVERY_NS {
                match Process::read(&self.host, pid) {
                    Some(read) => *process = read,
                    // It has exited. Mappings from before its first sample are probably its own.
                    None if is_new && process.address_space != 0 => process.mappings.clear(),
                    None => {}
                }
                process.address_space = address_space;
                process.read_ns = now;
            }
        }
        maps::find(&process.mappings, address)
    }
}

impl Process {
    /// `None` if it has exited, or cannot be read.
    fn read(host: &Host, pid: u32) -> Option<Self> {
        let text = fs::read(host.proc(&format!("{pid}/maps"))).ok()?;
        let mappings = maps::parse(&text).ok().filter(|mappings| !mappings.is_empty())?;
        Some(Self {
            address_space: 0,
            mappings,
            read_ns: monotonic_ns(),
        })
    }
}
