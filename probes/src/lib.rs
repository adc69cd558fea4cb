//! Reads metrics of the host and of the server under test: one file per source, each with its
//! columns and a pure parser.
//!
//! Probes do not depend on a run directory or a schedule. Every root is a parameter ([`Host`]), so
//! that tests run unprivileged on a fake host. A value that the source does not print is null; a
//! source that cannot be read is an error or [`NotRunning`].

mod background;
pub mod ebpf;
pub mod hardware;
pub mod lookup;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod options;
pub mod perf;
mod prelude;
pub mod procfs;
pub mod reference;
pub mod registry;
pub mod scrape;
pub mod source;
pub mod symbols;

use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ebpf::Shared;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;
pub use options::Options;
pub use registry::PROBES;
pub use source::Host;

/// An open source. Dropping it detaches.
///
/// Most sources are read in [`Probe::sample`]. A source that can be slow or hang is read on a
/// separate thread, by `Background`; the other methods exist for it.
pub trait Probe {
    /// The schema of its rows, if the entry does not declare it completely. Shape and columns are
    /// those of the entry.
    fn schema(&self) -> Option<&Schema> {
        None
    }

    /// Starts a read on the separate thread; does nothing for a source that is read in `sample`.
    fn begin(&mut self) {}

    /// True if a read has started and no `sample` has returned its rows.
    fn is_pending(&self) -> bool {
        false
    }

    /// Waits up to `timeout` for a read that has started.
    fn wait(&mut self, _timeout: Duration) {}

    /// Appends the current rows of the source.
    ///
    /// # Errors
    /// When the source cannot be read or does not have its documented format; the rows are then
    /// invalid.
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError>;

    /// Start and end of the read of the last `sample` (ns, CLOCK_MONOTONIC), if it was on the
    /// separate thread.
    fn read_ns(&self) -> Option<(i64, i64)> {
        None
    }

    /// A file next to the table, which the recorder writes after the last tick.
    fn recorded_file(&mut self) -> Option<RecordedFile> {
        None
    }
}

impl fmt::Debug for dyn Probe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Probe")
    }
}

/// A file that a probe adds to a recording.
#[derive(Debug)]
pub struct RecordedFile {
    /// Its name in the directory of the role.
    pub name: &'static str,
    /// All bytes.
    pub content: Vec<u8>,
}

/// Opens a probe: running, off, or unavailable.
pub type Open = fn(&Host, &Options) -> Result<Box<dyn Probe>, NotRunning>;

/// Opens a probe of eBPF programs, which shares some with others.
pub type OpenEbpf = fn(&Host, &Options, &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning>;

#[derive(Clone, Copy, Debug)]
enum Opener {
    Independent(Open),
    Ebpf(OpenEbpf),
}

/// The ticks at which a probe is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// Every tick.
    Every,
    /// Every n-th tick ([`Options::threads_every`]) and the last one: reading is expensive.
    Nth,
    /// Every tenth of the n-th ticks and the last one: reading is expensive, and values within
    /// seconds are not useful.
    Slow,
    /// The first and the last tick: only the totals are useful.
    Ends,
}

/// An entry in the list of probes.
#[derive(Debug)]
pub struct ProbeEntry {
    /// The name on the command line and of the table.
    pub name: &'static str,
    /// One line of description.
    pub help: &'static str,
    /// The columns and metrics of its rows.
    pub schema: &'static Schema,
    /// When it is read.
    pub cadence: Cadence,
    /// True if it runs only when it is named: its overhead is too high for the standard set.
    pub on_request: bool,
    /// True if it reads from the running kernel or a server, and not from files: it cannot run on a
    /// fake host.
    pub live: bool,
    /// True if its programs can be detached for a time ([`ebpf::Shared::set_gate`]).
    pub gated: bool,
    /// True if it reads symbols of watched processes ([`Options::symbols`]).
    pub reads_symbols: bool,
    opener: Opener,
}

impl ProbeEntry {
    /// A probe of the standard set that is read at every tick.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, schema: &'static Schema, open: Open) -> Self {
        Self::with_opener(name, help, schema, Opener::Independent(open))
    }

    /// A live probe of eBPF programs, in the standard set and read at every tick.
    #[must_use]
    pub const fn ebpf(
        name: &'static str,
        help: &'static str,
        schema: &'static Schema,
        open: OpenEbpf,
    ) -> Self {
        Self::with_opener(name, help, schema, Opener::Ebpf(open)).live()
    }

    const fn with_opener(
        name: &'static str,
        help: &'static str,
        schema: &'static Schema,
        opener: Opener,
    ) -> Self {
        Self {
            name,
            help,
            schema,
            cadence: Cadence::Every,
            on_request: false,
            live: false,
            gated: false,
            reads_symbols: false,
            opener,
        }
    }

    /// Opens the probe. The eBPF probes of one recorder get the same `shared`.
    ///
    /// # Errors
    /// [`NotRunning`] where the probe is off or cannot run on this host.
    pub fn open(
        &self,
        host: &Host,
        options: &Options,
        shared: &Rc<Shared>,
    ) -> Result<Box<dyn Probe>, NotRunning> {
        match self.opener {
            Opener::Independent(open) => open(host, options),
            Opener::Ebpf(open) => open(host, options, shared),
        }
    }

    /// The same probe, read at other ticks.
    #[must_use]
    pub const fn read_at(mut self, cadence: Cadence) -> Self {
        self.cadence = cadence;
        self
    }

    /// The same probe, off unless it is named.
    #[must_use]
    pub const fn on_request(mut self) -> Self {
        self.on_request = true;
        self
    }

    /// The same probe, whose programs have a gate.
    #[must_use]
    pub const fn gated(mut self) -> Self {
        self.gated = true;
        self
    }

    /// The same probe, which does not read files under the roots.
    #[must_use]
    pub const fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// The same probe, which reads symbols.
    #[must_use]
    pub const fn with_symbols(mut self) -> Self {
        self.reads_symbols = true;
        self
    }

    /// True if `name` selects this probe: its name, the group before an underscore (`mysql`), or
    /// `ebpf` for every probe of eBPF programs.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.name == name
            || name == "ebpf" && matches!(self.opener, Opener::Ebpf(_))
            || self
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('_'))
    }
}

/// Why a probe is not running.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRunning {
    /// It was not requested.
    #[error("{0}")]
    Off(String),
    /// It cannot run on this host; the text has the reason and the fix.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a sample failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A read on the separate thread has not finished: the tick is skipped.
    #[error("{0}")]
    Pending(String),
    /// Any other failure; the text names the source.
    #[error("{0}")]
    Source(String),
    /// The operating system refused the read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// The content does not have the documented format.
    #[error("{path}:{line}: {item}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// Line from 1.
        line: u32,
        /// The field.
        item: &'static str,
        /// What is wrong with it.
        message: String,
    },
}
