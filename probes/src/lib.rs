//! What can be read: one file per source, each a table of columns and a pure parser.
//!
//! Probes know no run directory and no schedule. Every root is a parameter ([`Host`]), so that everything runs unprivileged on
//! a fake host. A value that the source did not print is null; a source that cannot be read is an error or [`NotRunning`].

pub mod background;
pub mod ebpf;
pub mod hardware;
pub mod host;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod options;
pub mod perf;
pub mod procfs;
pub mod reference;
pub mod registry;
pub mod scrape;

use std::fmt::Debug;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ebpf::Shared;
pub use host::Host;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;
pub use options::Options;
pub use registry::PROBES;
use rustix::thread::CapabilitySet;

/// A source that is being read. Dropping it detaches.
///
/// Most sources are read within [`Probe::sample`]. One that may be slow or hang is read beside the ticks, by
/// [`background::Background`], which is what the other methods are for.
pub trait Probe: Debug {
    /// What its rows mean, where that is known only once it is open; of the shape and the columns that its entry declares.
    fn schema(&self) -> Option<&Schema> {
        None
    }

    /// Asks for a read that goes on beside the tick; nothing to do for a source that is read in `sample`.
    fn begin(&mut self) {}

    /// True if a read has begun whose rows nobody has taken yet.
    fn is_pending(&self) -> bool {
        false
    }

    /// Waits, but not beyond `patience`, for a read that was begun.
    fn wait(&mut self, _patience: Duration) {}

    /// Appends the source's rows as they are now.
    ///
    /// # Errors
    /// When the source cannot be read or is not what its format says; the rows are then not to be used.
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError>;

    /// When the read of the last `sample` began and ended (ns, CLOCK_MONOTONIC), if that was not within it.
    fn read_ns(&self) -> Option<(i64, i64)> {
        None
    }
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

/// At which ticks a probe is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// At every one.
    Every,
    /// Too dear for that: it follows [`Options::threads_every`], and the last tick.
    Nth,
    /// At every tenth of those, and the last tick: dear to read, and nobody looks at its seconds.
    Slow,
    /// At the first and the last: totals whose course does not matter.
    Ends,
}

/// One line of the list of probes.
#[derive(Debug)]
pub struct ProbeEntry {
    /// The name on the command line and of the table.
    pub name: &'static str,
    /// One line for a person.
    pub help: &'static str,
    /// What its rows mean.
    pub schema: &'static Schema,
    /// When it is read.
    pub cadence: Cadence,
    /// True if it is opened only when it is named: it costs too much for the standard set.
    pub on_request: bool,
    /// True if it asks the running kernel or a server: it has nothing to read on a fake host.
    pub live: bool,
    /// The capabilities that its reads need after it was opened (capabilities(7)); the recorder gives up all others.
    pub keeps: CapabilitySet,
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
            keeps: CapabilitySet::empty(),
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

    /// The same probe, read at every n-th tick.
    #[must_use]
    pub const fn every_nth(mut self) -> Self {
        self.cadence = Cadence::Nth;
        self
    }

    /// The same probe, read about every ten seconds, and at the last tick.
    #[must_use]
    pub const fn slowly(mut self) -> Self {
        self.cadence = Cadence::Slow;
        self
    }

    /// The same probe, read at the first and the last tick.
    #[must_use]
    pub const fn at_ends(mut self) -> Self {
        self.cadence = Cadence::Ends;
        self
    }

    /// The same probe, off unless it is named.
    #[must_use]
    pub const fn on_request(mut self) -> Self {
        self.on_request = true;
        self
    }

    /// The same probe, which reads no files under the roots.
    #[must_use]
    pub const fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// The same probe, whose reads need these capabilities also after it was opened.
    #[must_use]
    pub const fn keeps(mut self, capabilities: CapabilitySet) -> Self {
        self.keeps = self.keeps.union(capabilities);
        self
    }

    /// True if `name` means this probe: its own name, or the group before an underscore (`ebpf`, `mysql`).
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
            || self
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('_'))
    }
}

/// Why a probe is not running.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRunning {
    /// Nobody asked for it.
    #[error("{0}")]
    Off(String),
    /// It cannot be read here; the text says why and what would make it work.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a sample failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A read beside the ticks has not ended yet: the tick is skipped.
    #[error("{0}")]
    Pending(String),
    /// Anything else that a source answers; the text names the source.
    #[error("{0}")]
    Source(String),
    /// The operating system refused.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The refusal.
        source: io::Error,
    },
    /// The content is not what the format says.
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
