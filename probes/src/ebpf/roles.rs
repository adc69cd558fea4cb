//! The roles of processes as the programs know them: a byte per process number, in an array that the kernel shares.
//!
//! One map serves all programs. It is written through the mapping, so that a recorder which gave up its capabilities can still
//! follow a server that restarts.

use std::cell::Ref;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::MapHandle;
use libbpf_rs::MapType;
use libbpf_rs::OpenMapMut;
use libbpf_rs::libbpf_sys;
use loadprint_recording::clock::monotonic_ns;
use memmap2::MmapOptions;
use memmap2::MmapRaw;

use super::Shared;
use super::refused;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::procfs::targets::Targets;

/// As in `loadprint.bpf.h`: processes in one element, and roles with "nobody's".
const PAGE: usize = 4096;
const MAX_ROLES: usize = 8;

/// All probes of one tick read within this time; the next tick comes later.
const ONE_TICK_NS: i64 = 4_000_000;

/// The kernel's first process namespace (`include/uapi/linux/nsfs.h`): programs see its numbers.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Processes by role, kept up to date in the kernel.
#[derive(Debug)]
pub struct Roles {
    map: MapHandle,
    memory: MmapRaw,
    targets: Targets,
    names: Vec<String>,
    known: Vec<(String, u32)>,
    refreshed_ns: i64,
}

impl Roles {
    /// The names of the roles; number `n` in the kernel is `names()[n - 1]`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The map that a program's own `roles` is to be replaced by, before it is loaded.
    #[must_use]
    pub fn map(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// Elements of the map.
    #[must_use]
    pub fn elements(&self) -> u32 {
        self.map.max_entries()
    }

    /// Puts the map in the place of a program's own, before it is loaded.
    ///
    /// # Errors
    /// When libbpf refuses it.
    pub fn share(&self, roles: &mut OpenMapMut<'_>) -> libbpf_rs::Result<()> {
        roles.set_max_entries(self.elements())?;
        roles.reuse_fd(self.map())
    }

    /// The processes that are watched now.
    #[must_use]
    pub fn processes(&self) -> &[(String, u32)] {
        &self.known
    }

    fn new(host: &Host, options: &Options) -> Result<Self, NotRunning> {
        let mut names: Vec<_> = options
            .processes
            .iter()
            .map(|target| target.role.clone())
            .collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(NotRunning::Off(
                "no process to watch; name one with --process ROLE=PID".to_owned(),
            ));
        }
        if names.len() >= MAX_ROLES {
            return Err(NotRunning::Unavailable(format!(
                "ebpf roles: {} roles are named and {} can be told apart; name fewer with --process",
                names.len(),
                MAX_ROLES - 1
            )));
        }
        let namespace = fs::read_link(host.proc("self/ns/pid")).unwrap_or_default();
        if namespace.as_os_str() != FIRST_PID_NAMESPACE {
            return Err(NotRunning::Unavailable(
                "ebpf roles: process numbers differ in this container; run the recorder in the host's pid namespace"
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
        let memory = MmapOptions::new()
            .len(elements as usize * PAGE)
            .map_raw(map.as_fd().as_raw_fd())
            .map_err(|error| unmapped(&error))?;
        Ok(Self {
            map,
            memory,
            targets: Targets::new(host, options.processes.clone()).first_of_a_number(),
            names,
            known: vec![],
            refreshed_ns: 0,
        })
    }

    fn refresh(&mut self) {
        let now = monotonic_ns();
        if self.refreshed_ns > 0 && now - self.refreshed_ns < ONE_TICK_NS {
            return;
        }
        self.refreshed_ns = now;
        let found = self.targets.find();
        if found == self.known {
            return;
        }
        for (_, pid) in &self.known {
            self.set(*pid, 0);
        }
        for (role, pid) in &found {
            let number = self.names.iter().position(|name| name == role);
            self.set(*pid, number.map_or(0, |place| place as u8 + 1));
        }
        self.known = found;
    }

    fn set(&self, pid: u32, number: u8) {
        let len = self.map.max_entries() as usize * PAGE;
        // SAFETY: the mapping is `len` bytes long and lives as long as `self`; the kernel's programs read it at any time.
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<AtomicU8>(), len) };
        if let Some(byte) = bytes.get(pid as usize) {
            byte.store(number, Ordering::Relaxed);
        }
    }
}

/// A map that cannot be seen from here.
pub(crate) fn unmapped(error: &io::Error) -> NotRunning {
    NotRunning::Unavailable(format!(
        "ebpf: a map cannot be mapped: {error}; it needs Linux 5.5 or newer"
    ))
}

impl Shared {
    /// The roles, made at the first call and brought up to date at every later tick.
    ///
    /// # Errors
    /// [`NotRunning`] if no process is watched, or this host cannot tell them apart.
    pub fn roles(&self, host: &Host, options: &Options) -> Result<Ref<'_, Roles>, NotRunning> {
        self.roles
            .borrow_mut()
            .get_or_insert_with(|| Roles::new(host, options))
            .as_mut()
            .map(Roles::refresh)
            .map_err(|error| error.clone())?;
        Ref::filter_map(self.roles.borrow(), |roles| roles.as_ref()?.as_ref().ok())
            .map_err(|_| NotRunning::Off("no process to watch".to_owned()))
    }

    /// Looks for the processes again; a probe that tells roles apart calls it at every sample.
    pub fn refresh(&self) {
        if let Some(Ok(roles)) = self.roles.borrow_mut().as_mut() {
            roles.refresh();
        }
    }
}
