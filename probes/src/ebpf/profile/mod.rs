//! Samples the stacks of the watched processes on the CPU, in user space and in the kernel.
//!
//! A table has the samples of each stack by tick; a stack is the number of a node of a call tree,
//! which the recorder writes into `stacks.json` at the end. Stacks are found by frame pointers: the
//! callers of a function without one are missing or wrong.

mod event;
mod kallsyms;
mod modules;
mod processes;
mod tree;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use libbpf_rs::Link;
use libbpf_rs::RingBuffer;
use libbpf_rs::RingBufferBuilder;

use super::prelude::*;
use super::skeletons::profile::ProfileSkel;
use super::skeletons::profile::ProfileSkelBuilder;
use super::skeletons::profile::types::sample;
use crate::RecordedFile;
use crate::symbols::Symbols;
use event::Event;
use kallsyms::Kallsyms;
use modules::Modules;
use processes::Processes;
use tree::Frame;
use tree::ModuleEntry;
use tree::Stacks;
use tree::Tree;
use tree::UNKNOWN;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "profile",
    "samples of the watched processes on the CPU, by call stack",
    &SCHEMA,
    open,
)
.with_symbols();

static ENTITY: &[Text] = &[text("role"), text("stack")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    gauge(One) "samples",
        "samples with this stack since the previous tick; a stack without any has no row",
        "perf_event_open(2), PERF_COUNT_HW_CPU_CYCLES or PERF_COUNT_SW_CPU_CLOCK; bpf_get_stack";
    gauge(One) "cycles",
        "clock cycles that these samples stand for; null if the CPU clock is sampled",
        "sample_period of struct bpf_perf_event_data";
};

/// Samples per second and CPU: not a multiple of common timers, whose work would always or never be
/// sampled.
const FREQUENCY_HZ: u64 = 99;

/// Bytes of the ring buffer for each CPU: two seconds of the deepest stacks, more of usual ones.
const RING_BYTES: usize = 1 << 18;
/// The largest ring buffer; a host with more CPUs than it has room for is rarely busy on all.
const MAX_RING_BYTES: usize = 1 << 24;

/// The time that reading mappings and symbols may take in a tick; the rest is read in later ticks.
const READ_IN_TICK: Duration = Duration::from_millis(250);
/// The time for all names at the end of the recording.
const READ_AT_END: Duration = Duration::from_secs(15);

struct Profile {
    // Dropped in this order.
    _links: Vec<Link>,
    ring: RingBuffer<'static>,
    _programs: &'static ProfileSkel<'static>,
    lost: MappedArray<u64>,
    collected: Rc<RefCell<Collected>>,
    event: Event,
    roles: Rc<Roles>,
}

/// The samples since the previous tick, and all that is known of their stacks.
struct Collected {
    symbols: Symbols,
    processes: Processes,
    modules: Modules,
    kernel: Kallsyms,
    tree: Tree,
    /// Samples and the events that they stand for, by number of the role and node.
    samples: BTreeMap<(u16, u32), (u64, u64)>,
    stack: Vec<Frame>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    check_host(host)?;
    let roles = shared.roles(host, options)?;
    let symbols = options.symbols.clone();
    let symbols =
        symbols.ok_or_else(|| NotRunning::Unavailable("profile: no helper reads symbols".to_owned()))?;
    let (programs, _) = load_object(
        host,
        "profile",
        ProfileSkelBuilder::default(),
        |opened, cpus| {
            let ring = (cpus.next_power_of_two() * RING_BYTES).min(MAX_RING_BYTES);
            opened.maps.samples.set_max_entries(ring as u32)?;
            roles.share(&mut opened.maps.roles)
        },
        // Attached to the events of each CPU.
        |_| Ok(()),
    )?;
    // The ring buffer refers to the programs, which end with the recorder.
    let programs: &'static _ = Box::leak(Box::new(programs));
    let (event, links) = Event::start(host, programs)?;
    shared.add_programs("profile", programs.object())?;
    let collected = Rc::new(RefCell::new(Collected::new(host, symbols)));
    let mut ring = RingBufferBuilder::new();
    let receiver = Rc::clone(&collected);
    let take = move |bytes: &[u8]| {
        receiver.borrow_mut().add(bytes);
        0
    };
    ring.add(&programs.maps.samples, take)
        .map_err(|error| super::refused("profile", &error))?;
    Ok(Box::new(Profile {
        _links: links,
        ring: ring.build().map_err(|error| super::refused("profile", &error))?,
        _programs: programs,
        lost: MappedArray::new(&programs.maps.lost_samples)?,
        collected,
        event,
        roles,
    }))
}

impl Collected {
    fn new(host: &Host, symbols: Symbols) -> Self {
        Self {
            symbols,
            processes: Processes::default(),
            modules: Modules::new(),
            kernel: Kallsyms::open(host),
            tree: Tree::default(),
            samples: BTreeMap::new(),
            stack: vec![],
        }
    }

    /// Adds a record of the ring buffer: the fields of `struct sample` and the used frames.
    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let period = u64::from_ne_bytes(field(bytes, offset_of!(sample, period))?);
        let role = u16::from_ne_bytes(field(bytes, offset_of!(sample, role))?);
        let pid = u32::from_ne_bytes(field(bytes, offset_of!(sample, tgid))?);
        let address_space = u64::from_ne_bytes(field(bytes, offset_of!(sample, address_space))?);
        let kernel_bytes = u16::from_ne_bytes(field(bytes, offset_of!(sample, kernel_bytes))?);
        let frames = bytes.get(offset_of!(sample, frames)..)?;
        let (kernel, user) = frames.split_at_checked(kernel_bytes.into())?;
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.extend(addresses(kernel).map(|address| (Modules::KERNEL, self.kernel.place(address))));
        for address in addresses(user) {
            let frame = self.user_frame(pid, address_space, address);
            stack.push(frame);
            // Further addresses come from a place that is not a stack.
            if frame == UNKNOWN {
                break;
            }
        }
        let node = self.tree.node(stack.iter().rev().copied());
        self.stack = stack;
        let (samples, events) = self.samples.entry((role, node?)).or_default();
        *samples += 1;
        *events += period;
        Some(())
    }

    fn user_frame(&mut self, pid: u32, address_space: u64, address: u64) -> Frame {
        let Self {
            symbols,
            processes,
            modules,
            ..
        } = self;
        let Some(mapping) = processes.mapping(symbols, modules, pid, address_space, address) else {
            return UNKNOWN;
        };
        let module = modules.number(pid, mapping);
        let offset = mapping.offset.wrapping_add(address - mapping.start);
        (module, modules.place(symbols, module, offset))
    }
}

fn field<const SIZE: usize>(bytes: &[u8], offset: usize) -> Option<[u8; SIZE]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// The addresses of a stack from the innermost one. Callers are at their call, which precedes the
/// address of the return: that may already be in the next function.
fn addresses(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (addresses, _) = bytes.as_chunks();
    addresses
        .iter()
        .enumerate()
        .map(|(place, address)| u64::from_ne_bytes(*address).saturating_sub(u64::from(place > 0)))
}

impl Probe for Profile {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.collected.borrow().symbols.allow(READ_IN_TICK);
        let taken = self.ring.consume_raw();
        if taken < 0 {
            let error = io::Error::from_raw_os_error(-taken);
            return Err(ProbeError::Source(format!("profile: ring buffer: {error}")));
        }
        let processes = self.roles.processes();
        let collected = &mut *self.collected.borrow_mut();
        collected
            .processes
            .follow(&collected.symbols, &mut collected.modules, &processes);
        for ((role, node), (samples, events)) in std::mem::take(&mut collected.samples) {
            if let Some(role) = self.roles.names().get(usize::from(role).wrapping_sub(1)) {
                rows.row(&[role.as_bytes(), node.to_string().as_bytes()]);
                rows.uint(samples);
                rows.uint_or_null((self.event == Event::Cycles).then_some(events));
            }
        }
        Ok(())
    }

    fn recorded_file(&mut self) -> Option<RecordedFile> {
        let collected = self.collected.borrow();
        collected.symbols.allow(READ_AT_END);
        let modules = collected.modules.list();
        let frames = collected
            .tree
            .names(modules, &collected.kernel, &collected.symbols);
        let stacks = Stacks {
            event: self.event.name(),
            frequency_hz: FREQUENCY_HZ,
            lost: self.lost.counter(0, 0).unwrap_or(0),
            reason: collected.kernel.reason(),
            modules: modules
                .iter()
                .map(|module| ModuleEntry {
                    path: &module.path,
                    build_id: module.build_id.as_deref(),
                })
                .collect(),
            frames,
            nodes: collected.tree.nodes(),
        };
        let content = serde_json::to_vec(&stacks).ok()?;
        Some(RecordedFile {
            name: "stacks.json",
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_at_their_call() {
        let bytes: Vec<u8> = [10u64, 20, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(addresses(&bytes).collect::<Vec<_>>(), [10, 19, 0]);
        assert_eq!(addresses(&bytes[..7]).count(), 0);
    }
}
