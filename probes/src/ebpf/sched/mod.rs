//! The scheduler's programs (`sched.bpf.c`): one object that two tables share, so that each hook runs one program.

mod calls;
pub mod switches;
pub mod time;

use std::fmt;
use std::rc::Rc;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;

use super::Shared;
use super::loaded;
use super::object;
use super::programs::size_calls;
use super::ready;
use super::skeletons::sched::SchedSkel;
use super::skeletons::sched::SchedSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use calls::REASONS;

/// The programs, attached as long as a probe holds them.
pub(super) struct Scheduler {
    programs: SchedSkel<'static>,
    cpus: usize,
    /// The roles that are told apart; in the maps they follow "nobody's".
    names: Vec<String>,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    /// Elements of each CPU in the maps of waits and switches.
    fn slots(&self) -> usize {
        1 + self.names.len()
    }

    fn new(host: &Host, options: &Options) -> Result<Self, NotRunning> {
        ready(host)?;
        // Where nobody is watched there is still the whole host.
        let roles = match options.ebpf.roles(host, options) {
            Ok(roles) => Some(roles),
            Err(NotRunning::Off(_)) => None,
            Err(unavailable) => return Err(unavailable),
        };
        let names = roles.as_ref().map_or(vec![], |roles| roles.names().to_vec());
        let slots = 1 + names.len();
        let load = |cpus: usize| {
            let mut opened = SchedSkelBuilder::default().open(object())?;
            size_calls(opened.open_object_mut(), cpus)?;
            let maps = &mut opened.maps;
            let storage = options
                .ebpf
                .keep_of_tasks(&mut maps.turns, &mut maps.turns_by_number)?;
            if let Some(data) = maps.rodata_data.as_deref_mut() {
                data.slots = slots as u32;
                data.task_storage = storage;
                calls::fill(&mut data.reason_of_call);
            }
            maps.waits.set_max_entries((cpus * slots) as u32)?;
            maps.switches.set_max_entries((cpus * slots) as u32)?;
            maps.off_cpu
                .set_max_entries((cpus * names.len() * REASONS.len()).max(1) as u32)?;
            if let Some(roles) = &roles {
                roles.share(&mut maps.roles)?;
            }
            let mut programs = opened.load()?;
            programs.attach()?;
            Ok((programs, cpus))
        };
        let (programs, cpus) = loaded(host, "sched", load)?;
        options.ebpf.account("sched", programs.object())?;
        Ok(Self {
            programs,
            cpus,
            names,
        })
    }
}

impl Shared {
    /// The scheduler's programs, which are loaded for the first probe that asks and stay until the last one is gone.
    fn scheduler(&self, host: &Host, options: &Options) -> Result<Rc<Scheduler>, NotRunning> {
        let running = self.scheduler.borrow().upgrade();
        if let Some(running) = running {
            return Ok(running);
        }
        let loaded = Rc::new(Scheduler::new(host, options)?);
        self.scheduler.replace(Rc::downgrade(&loaded));
        Ok(loaded)
    }
}
