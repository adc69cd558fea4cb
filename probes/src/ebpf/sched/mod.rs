//! Loads the scheduler's programs (`sched.bpf.c`), which three probes share, so that each hook runs
//! only one program.

mod calls;
pub mod states;
pub mod switches;
pub mod time;

use std::fmt;
use std::rc::Rc;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;

use super::Shared;
use super::check_host;
use super::load_object;
use super::map::MappedArray;
use super::map::unmapped;
use super::object;
use super::programs::size_call_counters;
use super::skeletons::sched::SchedSkel;
use super::skeletons::sched::SchedSkelBuilder;
use super::skeletons::sched::types::counts;
use crate::Host;
use crate::NotRunning;
use crate::Options;

/// The programs, attached while a probe reads them.
pub(super) struct Scheduler {
    _programs: SchedSkel<'static>,
    counts: MappedArray<counts>,
    cpus: usize,
    /// The roles. In the map, the slot of processes without a role precedes them.
    names: Vec<String>,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    /// The elements of a slot on all CPUs: slot 0 is that of processes without a role.
    fn elements(&self, slot: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let slots = 1 + self.names.len();
        (0..self.cpus).map(move |cpu| cpu * slots + slot)
    }

    fn new(host: &Host, options: &Options, shared: &Shared) -> Result<Self, NotRunning> {
        check_host(host)?;
        // Without watched processes there are still the rows of the whole host.
        let roles = match shared.roles(host, options) {
            Ok(roles) => Some(roles),
            Err(NotRunning::Off(_)) => None,
            Err(unavailable) => return Err(unavailable),
        };
        let names = roles.as_ref().map_or(vec![], |roles| roles.names().to_vec());
        let slots = 1 + names.len();
        let load = |cpus: usize| {
            let mut opened = SchedSkelBuilder::default().open(object())?;
            size_call_counters(opened.open_object_mut(), cpus)?;
            let maps = &mut opened.maps;
            let use_task_storage =
                shared.choose_task_map(&mut maps.last_switches, &mut maps.last_switches_by_tid)?;
            if let Some(data) = maps.rodata_data.as_deref_mut() {
                data.slots = slots as u32;
                data.use_task_storage = use_task_storage;
                data.recorder = options.recorder_pid.cast_signed();
                calls::fill(&mut data.state_of_call);
            }
            maps.counts.set_max_entries((cpus * slots) as u32)?;
            if let Some(roles) = &roles {
                roles.share(&mut maps.roles)?;
            }
            let mut programs = opened.load()?;
            programs.attach()?;
            Ok((programs, cpus))
        };
        let (programs, cpus) = load_object(host, "sched", load)?;
        shared.add_programs("sched", programs.object())?;
        Ok(Self {
            counts: MappedArray::new(&programs.maps.counts).map_err(|error| unmapped(&error))?,
            _programs: programs,
            cpus,
            names,
        })
    }
}

impl Shared {
    /// Returns the running programs, or loads them.
    fn scheduler(&self, host: &Host, options: &Options) -> Result<Rc<Scheduler>, NotRunning> {
        let running = self.scheduler.borrow().upgrade();
        if let Some(running) = running {
            return Ok(running);
        }
        let loaded = Rc::new(Scheduler::new(host, options, self)?);
        self.scheduler.replace(Rc::downgrade(&loaded));
        Ok(loaded)
    }
}
