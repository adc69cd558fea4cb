//! Loads the eBPF programs of the probes and holds what the probes share.
//!
//! Each probe consists of a program, `src/bpf/<name>.bpf.c`, and a file here. Programs add to
//! counters in array maps, which are mapped into this process: a sample adds up memory over CPUs,
//! without a system call, and never resets a counter.

pub mod block;
pub mod irq;
mod map;
pub mod profile;
pub mod programs;
mod roles;
pub mod sched;
pub mod statements;
pub mod syscalls;
pub mod tcp;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::any::TypeId;
use std::cell::OnceCell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::rc::Weak;
use std::sync::Mutex;
use std::sync::Once;

use libbpf_rs::OpenMapMut;
use libbpf_rs::OpenObject;
use libbpf_rs::PrintLevel;
use libbpf_rs::ProgramInput;
use libbpf_rs::libbpf_sys;
use libbpf_rs::num_possible_cpus;
use libbpf_rs::set_print;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::rows::Rows;

use crate::Host;
use crate::NotRunning;
use crate::source::RAISE_OPEN_FILES;
use crate::source::fix_of;

use programs::Programs;
use programs::size_call_counters;
pub use roles::Roles;
use sched::Scheduler;
use skeletons::task_storage::TaskStorageSkelBuilder;

/// The names that a probe of eBPF programs needs.
mod prelude {
    pub(super) use std::mem::offset_of;
    pub(super) use std::rc::Rc;
    pub(super) use std::sync::atomic::Ordering;

    pub(super) use libbpf_rs::MapCore;
    pub(super) use libbpf_rs::MapFlags;
    pub(super) use libbpf_rs::skel::Skel;

    pub(super) use super::Shared;
    pub(super) use super::check_host;
    pub(super) use super::has_tracepoint;
    pub(super) use super::histogram_cells;
    pub(super) use super::load_object;
    pub(super) use super::map::Histograms;
    pub(super) use super::map::MappedArray;
    pub(super) use super::map::shared_sets;
    pub(super) use super::roles::Roles;
    pub(super) use crate::prelude::*;
}

/// The skeletons that `build.rs` generates from the programs: objects, maps, structs and enums.
#[allow(
    clippy::all,
    clippy::absolute_paths,
    clippy::wildcard_imports,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unused_qualifications,
    unsafe_op_in_unsafe_fn,
    dead_code,
    reason = "generated"
)]
pub(crate) mod skeletons {
    macro_rules! skeletons {
        ($($name:ident)*) => {
            $(pub mod $name {
                include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".skel.rs"));
            })*
        };
    }
    skeletons! { block empty irq profile sched statements syscalls task_storage tcp }
    // Of the tests.
    #[cfg(test)]
    skeletons! { broken bucket }
}

/// The objects and maps that the eBPF probes of one recorder share, of all its recordings.
#[derive(Debug, Default)]
pub struct Shared {
    /// The roles of processes, from the first probe that needs them.
    roles: OnceCell<Result<Rc<Roles>, NotRunning>>,
    /// The objects that several probes read, by their type, while one reads them.
    objects: RefCell<HashMap<TypeId, Weak<dyn Any>>>,
    /// All loaded programs, for the report of their cost.
    programs: RefCell<Programs>,
    /// Whether task storage works, from the first object that needs it.
    task_storage: OnceCell<bool>,
}

impl Shared {
    /// Behaves as on a kernel without task storage (Linux 5.10), so that a new kernel can test the
    /// code for an old one.
    #[must_use]
    pub fn without_task_storage() -> Self {
        Self {
            task_storage: OnceCell::from(false),
            ..Self::default()
        }
    }

    /// Returns the running object of a type, or loads it.
    ///
    /// # Errors
    /// [`NotRunning`] where this host cannot run it.
    pub(crate) fn once<T: 'static>(
        &self,
        load: impl FnOnce() -> Result<T, NotRunning>,
    ) -> Result<Rc<T>, NotRunning> {
        if let Some(running) = self.running() {
            return Ok(running);
        }
        let loaded = Rc::new(load()?);
        let object: Rc<dyn Any> = Rc::<T>::clone(&loaded);
        self.objects
            .borrow_mut()
            .insert(TypeId::of::<T>(), Rc::downgrade(&object));
        Ok(loaded)
    }

    fn running<T: 'static>(&self) -> Option<Rc<T>> {
        let running = self
            .objects
            .borrow()
            .get(&TypeId::of::<T>())
            .and_then(Weak::upgrade);
        running.and_then(|running| running.downcast().ok())
    }

    /// Opens or closes the gate of the probes that have one ([`crate::ProbeEntry::gated`]): closed, their
    /// programs are not attached, and a read finds what it found before.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] where the kernel refuses to attach them again.
    pub fn set_gate(&self, open: bool) -> Result<(), NotRunning> {
        self.running::<Scheduler>()
            .map_or(Ok(()), |scheduler| scheduler.set_gate(open))
    }

    /// Chooses the map in which an object stores its values of tasks, before the object is loaded.
    /// Returns the value of its constant `use_task_storage`.
    ///
    /// # Errors
    /// When libbpf refuses the change.
    pub(crate) fn choose_task_map(
        &self,
        storage: &mut OpenMapMut<'_>,
        by_tid: &mut OpenMapMut<'_>,
    ) -> libbpf_rs::Result<u32> {
        let has_storage = *self.task_storage.get_or_init(has_task_storage);
        storage.set_autocreate(has_storage)?;
        by_tid.set_autocreate(!has_storage)?;
        Ok(has_storage.into())
    }
}

/// Whether the running task gets task storage. Linux 5.10 refuses the program. Linux 7.2 returns no
/// storage, without an error, on a processor without a double-word compare and exchange
/// (`kmalloc_nolock` in mm/slub.c), as in some virtual machines.
fn has_task_storage() -> bool {
    let run = || -> libbpf_rs::Result<u32> {
        let skeleton = TaskStorageSkelBuilder::default().open(object())?.load()?;
        let output = skeleton.progs.task_storage.test_run(ProgramInput::default())?;
        Ok(output.return_value)
    };
    let result = run();
    clear_log();
    matches!(result, Ok(1))
}

/// The messages of libbpf since the last check of the host; its errors are only numbers.
static LIBBPF_LOG: Mutex<String> = Mutex::new(String::new());
static SET_LOG: Once = Once::new();

fn append_to_log(level: PrintLevel, text: String) {
    if !matches!(level, PrintLevel::Debug)
        && let Ok(mut log) = LIBBPF_LOG.lock()
    {
        log.push_str(&text);
    }
}

fn clear_log() {
    if let Ok(mut log) = LIBBPF_LOG.lock() {
        log.clear();
    }
}

/// Memory for a loaded object; it is freed when the recorder exits.
pub(crate) fn object() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}

/// Checks that this host can run programs, and clears the log of libbpf. Call it before an object
/// is opened.
///
/// # Errors
/// [`NotRunning::Unavailable`] where the kernel has no type information (BTF).
pub(crate) fn check_host(host: &Host) -> Result<(), NotRunning> {
    SET_LOG.call_once(|| {
        set_print(Some((PrintLevel::Info, append_to_log)));
    });
    clear_log();
    let btf = host.sys("kernel/btf/vmlinux");
    if btf.exists() {
        return Ok(());
    }
    Err(NotRunning::Unavailable(format!(
        "{}: no such file; eBPF probes need Linux 5.8 or newer, built with CONFIG_DEBUG_INFO_BTF",
        btf.display()
    )))
}

/// The loaded object of a builder.
type Loaded<Builder> = <<Builder as SkelBuilder<'static>>::Output as OpenSkel<'static>>::Output;

/// Loads the object `name` after `prepare`, which gets it and the number of CPUs; `start` attaches it.
/// Returns the number of CPUs too.
///
/// # Errors
/// [`NotRunning::Unavailable`] where this host cannot run programs, or the kernel refuses this one.
pub(crate) fn load_object<Builder: SkelBuilder<'static>>(
    host: &Host,
    name: &str,
    builder: Builder,
    prepare: impl FnOnce(&mut Builder::Output, usize) -> libbpf_rs::Result<()>,
    start: impl FnOnce(&mut Loaded<Builder>) -> libbpf_rs::Result<()>,
) -> Result<(Loaded<Builder>, usize), NotRunning> {
    check_host(host)?;
    let load = || {
        let cpus = num_possible_cpus()?;
        let mut opened = builder.open(object())?;
        size_call_counters(opened.open_object_mut(), cpus)?;
        prepare(&mut opened, cpus)?;
        let mut loaded = opened.load()?;
        start(&mut loaded)?;
        Ok((loaded, cpus))
    };
    load().map_err(|error| refused(name, &error))
}

/// Whether this kernel has a tracepoint with type information; for a program that is optional.
pub(crate) fn has_tracepoint(name: &CStr) -> bool {
    // SAFETY: libbpf reads the C string only during the call.
    unsafe { libbpf_sys::libbpf_find_vmlinux_btf_id(name.as_ptr(), libbpf_sys::BPF_TRACE_RAW_TP) > 0 }
}

/// Reports why a program is not running, from the error and the log of libbpf.
pub(crate) fn refused(name: &str, error: &libbpf_rs::Error) -> NotRunning {
    let log = LIBBPF_LOG
        .lock()
        .map(|mut log| std::mem::take(&mut *log))
        .unwrap_or_default();
    NotRunning::Unavailable(reason(name, &error.to_string(), error.kind(), &log))
}

fn reason(name: &str, error: &str, kind: libbpf_rs::ErrorKind, log: &str) -> String {
    if kind == libbpf_rs::ErrorKind::PermissionDenied && !log.contains("BEGIN PROG LOAD LOG") {
        return format!(
            "ebpf {name}: {error}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE"
        );
    }
    // The verifier prints its reason before the summary that ends its log.
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let verifier = log
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("processed "));
    let why = if log.contains("processed ") {
        verifier.last()
    } else {
        lines.next_back()
    };
    let why = why.unwrap_or("libbpf gave no reason");
    // Where libbpf has no descriptor to find out whether the kernel has global variables, it leaves out
    // the maps for them.
    let has_no_descriptor = why.contains("EMFILE") || why.contains("not pointing to valid bpf_map");
    let fix = if has_no_descriptor {
        RAISE_OPEN_FILES
    } else {
        fix_of(&error, "please report this with the version of the kernel")
    };
    format!("ebpf {name}: {error}: {why}; {fix}")
}

/// Appends the cells of a histogram.
pub(crate) fn histogram_cells(rows: &mut Rows, sum: u64, buckets: &[u64]) {
    rows.uint(sum);
    rows.list(buckets);
}
