//! The executable mappings of the sampled processes.

use std::collections::HashMap;

use loadprint_recording::clock::monotonic_ns;

use super::modules::Modules;
use crate::symbols::Answer;
use crate::symbols::Mapping;
use crate::symbols::Request;
use crate::symbols::Symbols;
use crate::symbols::boundary;
use crate::symbols::maps;

/// Time between two reads of the mappings of a process, in which new ones stay unknown: a stack
/// without frame pointers contains addresses that are in no mapping.
const READ_EVERY_NS: i64 = 1_000_000_000;
/// The most mappings of all processes together, up to 35 MB; those of further processes are unknown.
const MAX_MAPPINGS: usize = 1 << 15;
/// The longest name of a mapping, in bytes; a longer one is cut.
const MAX_NAME: usize = 1024;

#[derive(Debug, Default)]
struct Process {
    /// The program that it executes; 0 before its first sample.
    address_space: u64,
    mappings: Vec<Mapping>,
    read_ns: i64,
}

/// The processes by their ID.
#[derive(Debug, Default)]
pub struct Processes {
    known: HashMap<u32, Process>,
}

impl Processes {
    /// Reads the mappings of new processes, which may exit before the next tick, and forgets those
    /// that have exited. Call it after the samples of a tick are taken.
    pub fn follow(&mut self, symbols: &Symbols, modules: &mut Modules, running: &[(String, u32)]) {
        self.known
            .retain(|known, _| running.iter().any(|(_, pid)| pid == known));
        for (_, pid) in running {
            if !self.known.contains_key(pid)
                && let Some(mappings) = self.read(symbols, modules, *pid)
            {
                let process = Process {
                    mappings: mappings.unwrap_or_default(),
                    read_ns: monotonic_ns(),
                    ..Process::default()
                };
                self.known.insert(*pid, process);
            }
        }
    }

    /// The mapping of an address in the program that a process executed at a sample.
    pub fn mapping(
        &mut self,
        symbols: &Symbols,
        modules: &mut Modules,
        pid: u32,
        address_space: u64,
        address: u64,
    ) -> Option<&Mapping> {
        let process = self.known.entry(pid).or_default();
        let is_new = process.address_space != address_space;
        if is_new || maps::find(&process.mappings, address).is_none() {
            let now = monotonic_ns();
            let is_due = is_new || now - process.read_ns >= READ_EVERY_NS;
            if is_due && let Some(read) = self.read(symbols, modules, pid) {
                let process = self.known.entry(pid).or_default();
                match read {
                    Some(mappings) => process.mappings = mappings,
                    // It has exited. Mappings from before its first sample are probably its own.
                    None if is_new && process.address_space != 0 => process.mappings.clear(),
                    None => {}
                }
                process.address_space = address_space;
                process.read_ns = now;
            }
        }
        maps::find(&self.known.get(&pid)?.mappings, address)
    }

    /// The mappings of a process, with open files: the inner `None` if it has exited or cannot be
    /// read, the outer one if there was no time.
    fn read(&self, symbols: &Symbols, modules: &mut Modules, pid: u32) -> Option<Option<Vec<Mapping>>> {
        match symbols.ask::<Vec<Mapping>>(&Request::Maps { pid }) {
            Answer::Ready(mut mappings, _) if !mappings.is_empty() => {
                let of_others = self.known.iter().filter(|(known, _)| **known != pid);
                let known: usize = of_others.map(|(_, process)| process.mappings.len()).sum();
                mappings.truncate(MAX_MAPPINGS.saturating_sub(known));
                mappings.sort_unstable_by_key(|mapping| mapping.start);
                for mapping in &mut mappings {
                    let end = boundary(&mapping.name, MAX_NAME);
                    mapping.name.truncate(end);
                }
                modules.open(symbols, pid, &mappings).then_some(Some(mappings))
            }
            Answer::Ready(..) | Answer::Failed(_) => Some(None),
            Answer::Later | Answer::Busy => None,
        }
    }
}
