//! Writes the roles of processes for the programs: one byte for each process ID, in a map that all
//! programs share.
//!
//! The recorder writes to the mapped memory, without a system call.

use std::cell::RefCell;
use std::fs;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::MapHandle;
use libbpf_rs::MapType;
use libbpf_rs::OpenMapMut;
use libbpf_rs::libbpf_sys;
use loadprint_recording::clock::monotonic_ns;

use super::Shared;
use super::map::MappedArray;
use super::refused;
use super::skeletons::sched::types::role_limits as RoleLimits;
use super::skeletons::sched::types::role_page;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::lookup::Lookup;
use crate::procfs::targets::Targets;

/// Roles that a map can have, role 0 included.
const MAX_ROLES: usize = RoleLimits::MAX_ROLES.0 as usize;
/// Processes in one element of the map.
const PAGE: usize = RoleLimits::ROLE_PAGE.0 as usize;

/// All probes of a tick are read within this time, and the next tick is later.
const ONE_TICK_NS: i64 = 4_000_000;

/// The initial pid namespace (`include/uapi/linux/nsfs.h`), whose process IDs the programs see.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Processes by role, also in a map for the programs.
#[derive(Debug)]
pub struct Roles {
    map: MapHandle,
    names: Vec<String>,
    watched: RefCell<Watched>,
}

#[derive(Debug)]
struct Watched {
    pages: MappedArray<role_page>,
    targets: Lookup<(), Vec<(String, u32)>>,
    processes: Vec<(String, u32)>,
    refreshed_ns: i64,
}

impl Roles {
    /// The names of the roles; `names()[n - 1]` is number `n` in the kernel.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Replaces the map `roles` of an object by the shared one, before the object is loaded.
    ///
    /// # Errors
    /// When libbpf refuses it.
    pub fn share(&self, roles: &mut OpenMapMut<'_>) -> libbpf_rs::Result<()> {
        roles.set_max_entries(self.map.max_entries())?;
        roles.reuse_fd(self.map.as_fd())
    }

    fn new(host: &Host, options: &Options) -> Result<Self, NotRunning> {
        let processes: Vec<_> = options.processes.iter().chain(&options.others).cloned().collect();
        let mut names: Vec<_> = processes.iter().map(|target| target.role.clone()).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(NotRunning::Off(
                "no process is watched; name one with --process ROLE=PID".to_owned(),
            ));
        }
        if names.len() >= MAX_ROLES {
            return Err(NotRunning::Unavailable(format!(
                "ebpf roles: {} roles, and the limit is {}; name fewer roles with --process",
                names.len(),
                MAX_ROLES - 1
            )));
        }
        let namespace = fs::read_link(host.proc("self/ns/pid")).unwrap_or_default();
        if namespace.as_os_str() != INITIAL_PID_NAMESPACE {
            return Err(NotRunning::Unavailable(
                "ebpf roles: this container has other process IDs than the host; run the recorder in the host's pid namespace"
                    .to_owned(),
            ));
        }
        let pid_max = fs::read_to_string(host.proc("sys/kernel/pid_max"))
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .unwrap_or(1 << 22);
        let elements = pid_max.div_ceil(PAGE) as u32;
        let options_of_map = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let map = MapHandle::create(
            MapType::Array,
            Some("roles"),
            4,
            PAGE as u32,
            elements,
            &options_of_map,
        )
        .map_err(|error| refused("roles", &error))?;
        let pages = MappedArray::new(&map)?;
        let mut targets = Targets::new(host, processes).with_first_process_only();
        Ok(Self {
            map,
            names,
            watched: RefCell::new(Watched {
                pages,
                targets: Lookup::new(move |()| targets.find()),
                processes: vec![],
                refreshed_ns: 0,
            }),
        })
    }

    /// Updates the processes once a tick; a probe with rows by role calls it at every sample.
    pub fn refresh(&self) {
        self.watched.borrow_mut().refresh(&self.names);
    }

    /// The processes, updated once a tick.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.refresh();
        self.watched.borrow().processes.clone()
    }
}

impl Watched {
    fn refresh(&mut self, names: &[String]) {
        let now = monotonic_ns();
        if self.refreshed_ns > 0 && now - self.refreshed_ns < ONE_TICK_NS {
            return;
        }
        self.refreshed_ns = now;
        // Those of the last tick stay while a process blocks the lookup.
        let Some(processes) = self.targets.ask(()) else {
            return;
        };
        if processes == self.processes {
            return;
        }
        for (_, pid) in &self.processes {
            self.set(*pid, 0);
        }
        for (role, pid) in &processes {
            let index = names.iter().position(|name| name == role);
            self.set(*pid, index.map_or(0, |index| index as u8 + 1));
        }
        self.processes = processes;
    }

    fn set(&self, pid: u32, number: u8) {
        let pid = pid as usize;
        if let Some(role) = self.pages.bytes(pid / PAGE).get(pid % PAGE) {
            role.store(number, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// The roles: created at the first call, updated once a tick at later calls.
    ///
    /// # Errors
    /// [`NotRunning`] if no process is watched, or the programs cannot identify the processes.
    pub fn roles(&self, host: &Host, options: &Options) -> Result<Rc<Roles>, NotRunning> {
        let roles = self
            .roles
            .get_or_init(|| Roles::new(host, options).map(Rc::new))
            .clone()?;
        roles.refresh();
        Ok(roles)
    }
}
