//! Loads the scheduler's programs (`sched.bpf.c`), which four probes share, so that each hook runs
//! only one program.

mod calls;
pub mod exchanges;
pub mod states;
pub mod time;

use std::cell::RefCell;
use std::env;

use libbpf_rs::Link;

use super::prelude::*;
use super::refused;
use super::skeletons::sched::SchedSkel;
use super::skeletons::sched::SchedSkelBuilder;
use super::skeletons::sched::types::counts;
use super::skeletons::sched::types::exchange_totals;

/// The roles whose exchanges are followed.
const SERVER: &str = "server";
const LOAD: &str = "load";

/// For a test of the time ledger: the program ignores one switch in this many.
const LOSE_ONE_IN: &str = "LOADPRINT_TEST_LOSE_ONE_SWITCH_IN";

/// The programs, loaded while a probe reads them.
pub(super) struct Scheduler {
    programs: RefCell<SchedSkel<'static>>,
    /// Of the programs while the gate is open, else empty. Skel::attach would attach them only once.
    links: RefCell<Vec<Link>>,
    counts: MappedArray<counts>,
    exchanges: MappedArray<exchange_totals>,
    follows_exchanges: bool,
    cpus: usize,
    roles: Option<Rc<Roles>>,
    /// The roles. In the map, the slot of processes without a role precedes them.
    names: Vec<String>,
}

impl Scheduler {
    /// The elements of a slot on all CPUs: slot 0 is that of processes without a role.
    fn elements(&self, slot: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let slots = 1 + self.names.len();
        (0..self.cpus).map(move |cpu| cpu * slots + slot)
    }

    fn new(
        host: &Host,
        options: &Options,
        shared: &Shared,
        has_histograms: bool,
    ) -> Result<Self, NotRunning> {
        check_host(host)?;
        // Without watched processes there are still the rows of the whole host.
        let roles = match shared.roles(host, options) {
            Ok(roles) => Some(roles),
            Err(NotRunning::Off(_)) => None,
            Err(unavailable) => return Err(unavailable),
        };
        let names = roles.as_ref().map_or(vec![], |roles| roles.names().to_vec());
        let slots = 1 + names.len();
        let follows_exchanges = has_tracepoint(c"sock_send_length");
        // Its number in the kernel; 0 if no process has it.
        let number_of = |role: &str| {
            let index = names.iter().position(|name| name == role && follows_exchanges);
            index.map_or(0, |index| index as u32 + 1)
        };
        let (programs, cpus) = load_object(
            host,
            "sched",
            SchedSkelBuilder::default(),
            |opened, cpus| {
                let maps = &mut opened.maps;
                let use_task_storage =
                    shared.choose_task_map(&mut maps.last_switches, &mut maps.last_switches_by_tid)?;
                if let Some(data) = maps.rodata_data.as_deref_mut() {
                    data.slots = slots as u32;
                    data.has_histograms = has_histograms.into();
                    data.use_task_storage = use_task_storage;
                    data.recorder = options.recorder_pid.cast_signed();
                    (data.server_role, data.load_role) = (number_of(SERVER), number_of(LOAD));
                    data.choosing_role = match data.load_role {
                        0 => data.server_role,
                        role => role,
                    };
                    let lose_one_in = env::var(LOSE_ONE_IN).ok();
                    data.lose_one_in = lose_one_in.and_then(|number| number.parse().ok()).unwrap_or(0);
                    calls::fill(&mut data.state_of_call);
                }
                opened.progs.sock_send_length.set_autoload(follows_exchanges);
                maps.counts.set_max_entries((cpus * slots) as u32)?;
                roles
                    .as_ref()
                    .map_or(Ok(()), |roles| roles.share(&mut maps.roles))
            },
            |_| Ok(()),
        )?;
        let scheduler = Self {
            counts: MappedArray::new(&programs.maps.counts)?,
            exchanges: MappedArray::new(&programs.maps.exchange_totals)?,
            follows_exchanges,
            programs: RefCell::new(programs),
            links: RefCell::default(),
            cpus,
            roles,
            names,
        };
        scheduler.set_gate(true)?;
        shared.add_programs("sched", scheduler.programs.borrow().object())?;
        Ok(scheduler)
    }

    /// Opens or closes the gate: closed, the programs are not attached and cost nothing.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] where the kernel refuses to attach them.
    pub(super) fn set_gate(&self, open: bool) -> Result<(), NotRunning> {
        let mut links = self.links.borrow_mut();
        if !open {
            links.clear();
        }
        if !open || !links.is_empty() {
            return Ok(());
        }
        let mut programs = self.programs.borrow_mut();
        if let Some(bss) = programs.maps.bss_data.as_deref_mut() {
            // What began in an earlier opening says nothing of the time since.
            bss.first_switch = 0;
            bss.followed.pair = 0;
            bss.opening = bss.opening.checked_add(1).unwrap_or(1);
        }
        let loaded = programs.object().progs_mut().filter(|program| program.autoload());
        let attached = loaded.map(|program| program.attach());
        *links = attached
            .collect::<libbpf_rs::Result<_>>()
            .map_err(|error| refused("sched", &error))?;
        Ok(())
    }

    /// Updates the roles, once a tick.
    fn refresh(&self) {
        if let Some(roles) = &self.roles {
            roles.refresh();
        }
    }
}

impl Shared {
    fn scheduler(&self, host: &Host, options: &Options) -> Result<Rc<Scheduler>, NotRunning> {
        self.once(|| Scheduler::new(host, options, self, false))
    }
}
