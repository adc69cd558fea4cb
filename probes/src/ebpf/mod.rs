//! What the eBPF probes have in common: whether this host can run them, how they are loaded, and the roles of processes.
//!
//! A probe is a program in `src/bpf/<name>.bpf.c` and a file here. Programs add to arrays in the kernel that are mapped into
//! this process: a sample is a sum over CPUs of memory, without a system call. Nothing is read and cleared.

pub mod block;
pub mod block_size;
mod dispatch;
pub mod irq;
mod map;
pub mod programs;
mod roles;
pub mod sched;
pub mod statements;
pub mod syscalls;
pub mod tcp;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::cell::RefCell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Weak;
use std::sync::Mutex;
use std::sync::Once;

use libbpf_rs::OpenMapMut;
use libbpf_rs::OpenObject;
use libbpf_rs::PrintLevel;
use libbpf_rs::libbpf_sys;
use libbpf_rs::num_possible_cpus;
use libbpf_rs::set_print;
use loadprint_recording::rows::Rows;

use crate::Host;
use crate::NotRunning;

use block::Requests;
pub use map::Histograms;
pub use map::Words;
use programs::Programs;
pub use roles::Roles;
use sched::Scheduler;

/// The skeletons that `build.rs` makes.
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
    /// `block.bpf.c`.
    pub mod block {
        include!(concat!(env!("OUT_DIR"), "/block.skel.rs"));
    }
    /// `irq.bpf.c`.
    pub mod irq {
        include!(concat!(env!("OUT_DIR"), "/irq.skel.rs"));
    }
    /// `statements.bpf.c`.
    pub mod statements {
        include!(concat!(env!("OUT_DIR"), "/statements.skel.rs"));
    }
    /// `sched.bpf.c`.
    pub mod sched {
        include!(concat!(env!("OUT_DIR"), "/sched.skel.rs"));
    }
    /// `syscalls.bpf.c`.
    pub mod syscalls {
        include!(concat!(env!("OUT_DIR"), "/syscalls.skel.rs"));
    }
    /// `tcp.bpf.c`.
    pub mod tcp {
        include!(concat!(env!("OUT_DIR"), "/tcp.skel.rs"));
    }
    /// `bucket.bpf.c` of the tests.
    #[cfg(test)]
    pub mod bucket {
        include!(concat!(env!("OUT_DIR"), "/bucket.skel.rs"));
    }
    /// `broken.bpf.c` of the tests.
    #[cfg(test)]
    pub mod broken {
        include!(concat!(env!("OUT_DIR"), "/broken.skel.rs"));
    }
}

/// What the eBPF probes of one recorder share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The roles of processes, once a probe has asked for them.
    roles: RefCell<Option<Result<Roles, NotRunning>>>,
    /// The scheduler's programs, while one of their tables is open.
    scheduler: RefCell<Weak<Scheduler>>,
    /// The programs on system calls, while one of their tables is open.
    syscalls: RefCell<Weak<syscalls::Programs>>,
    /// The block programs, as long as a probe reads them.
    block: RefCell<Weak<Requests>>,
    /// All programs that were loaded, for the account of what they cost.
    programs: RefCell<Programs>,
    /// Whether programs can keep values with tasks, once an object has asked.
    task_storage: OnceCell<bool>,
}

impl Shared {
    /// As on a kernel whose programs cannot keep values with tasks, whatever this one offers: the way to test on a new kernel
    /// what runs on an old one.
    #[must_use]
    pub fn without_task_storage() -> Self {
        Self {
            task_storage: OnceCell::from(false),
            ..Self::default()
        }
    }

    /// Chooses the map in which an object that uses `OF_TASKS` keeps its values, before it is loaded; gives what to set its
    /// `task_storage` to.
    ///
    /// # Errors
    /// When libbpf refuses it.
    pub(crate) fn keep_of_tasks(
        &self,
        storage: &mut OpenMapMut<'_>,
        by_number: &mut OpenMapMut<'_>,
    ) -> libbpf_rs::Result<u32> {
        let has_storage = *self.task_storage.get_or_init(has_task_storage);
        storage.set_autocreate(has_storage)?;
        by_number.set_autocreate(!has_storage)?;
        Ok(has_storage.into())
    }
}

/// Whether programs can keep values with tasks. Asked of the kernel for kprobes, the one type for which libbpf can ask: the
/// types that are used here have the same helpers (`kernel/trace/bpf_trace.c`, `bpf_tracing_func_proto`).
fn has_task_storage() -> bool {
    // SAFETY: no options are given; libbpf loads a small program and closes it.
    let answer = unsafe {
        libbpf_sys::libbpf_probe_bpf_helper(
            libbpf_sys::BPF_PROG_TYPE_KPROBE,
            libbpf_sys::BPF_FUNC_task_storage_get,
            ptr::null(),
        )
    };
    answer == 1
}

/// What libbpf has said since a program was last opened; its errors are numbers without it.
static SAID: Mutex<String> = Mutex::new(String::new());
static LISTEN: Once = Once::new();

fn listen(level: PrintLevel, text: String) {
    if !matches!(level, PrintLevel::Debug)
        && let Ok(mut said) = SAID.lock()
    {
        said.push_str(&text);
    }
}

/// Memory for a loaded object, which stays as long as the recorder runs.
pub(crate) fn object() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}

/// Whether this host can run the programs at all; to be called before one is opened.
///
/// # Errors
/// [`NotRunning::Unavailable`] where the kernel does not describe its types.
pub(crate) fn ready(host: &Host) -> Result<(), NotRunning> {
    LISTEN.call_once(|| {
        set_print(Some((PrintLevel::Info, listen)));
    });
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    let btf = host.sys("kernel/btf/vmlinux");
    if btf.exists() {
        return Ok(());
    }
    Err(NotRunning::Unavailable(format!(
        "{}: not there; it needs Linux 5.8 or newer built with CONFIG_DEBUG_INFO_BTF",
        btf.display()
    )))
}

/// What `load` makes of the number of CPUs: an object that is opened, sized, loaded and attached.
///
/// # Errors
/// [`NotRunning::Unavailable`] where this host cannot run programs, or the kernel refuses this one; `name` is the object's.
pub(crate) fn loaded<T>(
    host: &Host,
    name: &str,
    load: impl FnOnce(usize) -> Result<T, libbpf_rs::Error>,
) -> Result<T, NotRunning> {
    ready(host)?;
    num_possible_cpus()
        .and_then(load)
        .map_err(|error| refused(name, &error))
}

/// Whether this kernel has a tracepoint that programs can be attached to by its types; for programs that can be done without.
pub(crate) fn has_tracepoint(name: &CStr) -> bool {
    // SAFETY: the name is a C string that libbpf reads within the call.
    unsafe { libbpf_sys::libbpf_find_vmlinux_btf_id(name.as_ptr(), libbpf_sys::BPF_TRACE_RAW_TP) > 0 }
}

/// Why a program is not running, from libbpf's error and what it said besides.
pub(crate) fn refused(name: &str, error: &libbpf_rs::Error) -> NotRunning {
    let said = SAID
        .lock()
        .map(|mut said| std::mem::take(&mut *said))
        .unwrap_or_default();
    NotRunning::Unavailable(reason(name, &error.to_string(), error.kind(), &said))
}

fn reason(name: &str, error: &str, kind: libbpf_rs::ErrorKind, said: &str) -> String {
    if kind == libbpf_rs::ErrorKind::PermissionDenied && !said.contains("BEGIN PROG LOAD LOG") {
        return format!(
            "ebpf {name}: {error}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE"
        );
    }
    // The verifier's last words stand before the summary that ends its log.
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let verdict = said
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("processed "));
    let why = if said.contains("processed ") {
        verdict.last()
    } else {
        lines.next_back()
    };
    let why = why.unwrap_or("libbpf gave no reason");
    format!("ebpf {name}: {error}: {why}; please report this with the kernel's version")
}

/// Appends a histogram's cells: `sum` and `buckets`.
pub(crate) fn histogram_cells(rows: &mut Rows, sum: u64, buckets: &[u64]) {
    rows.uint(sum);
    rows.list(buckets);
}
