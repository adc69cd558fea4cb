//! The command line: commands, options and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;
use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::options::CpuSet;
use loadprint_probes::options::ProcessTarget;
use loadprint_probes::options::parse_cpuset;

use crate::canary::CanaryOptions;
#[cfg(feature = "mysql")]
use crate::cli_mysql::MysqlOptions;
use crate::cli_scrape::ScrapeOptions;

/// Comes before the options of each further recording of `record`.
pub const AND: &str = "--and";

const EXAMPLES: &str = "\
Examples:
  loadprint-collect record --out runs/try --duration 60s
  loadprint-collect record --out RUN --process server=@/run/mysqld/mysqld.pid \
      --cpuset server=0-7 --data-dir /var/lib/mysql
  loadprint-collect finish RUN          after the recorder was killed
  loadprint-collect probes              which probes this host supports, and why not the others";

const RECORD_EXAMPLES: &str = "\
Records until SIGTERM, SIGINT, the end of its terminal (not under nohup) or that of --duration,
then writes the tables. After SIGKILL, `loadprint-collect finish RUN` writes the tables; only the tick
that was being written is lost.
SIGUSR1 requests one tick of all probes, including those that are otherwise read at the start and
the end only (mysql_digests): send it where a measurement window begins or ends. With --on-request
it is taken at once: the journal has grown when it is complete.

With --on-request one recorder can make several recordings, so that its eBPF programs run once: `--and` and
all options of a recording follow those of the first, whose limits and pid file apply. SIGRTMIN+K requests
a tick of the Kth after it. SIGUSR2 detaches the scheduler's programs, SIGRTMIN attaches them again: in between
they cost nothing, and their probes are not read.

Examples:
  loadprint-collect record --out runs/try --duration 60s
  loadprint-collect record --out RUN --role load --process load=sysbench --interval 100ms
  loadprint-collect record --out RUN --probes cpu,disk,process --process server=4242
  loadprint-collect record --on-request --out A --process server=42 \\
      --and --on-request --out B --process server=43
  loadprint-collect record --out RUN --live /run/live.json    the newest sample, for a program that watches it";

const FINGERPRINT_EXAMPLES: &str = "\
Examples:
  loadprint-collect fingerprint --data-dir /var/lib/mysql --cpuset server=0-7 \
      --cpuset load=8-15
  loadprint check --data-dir /var/lib/mysql      checks it for configuration mistakes";

/// Records the counters of a host.
#[derive(Debug, Parser)]
#[command(name = "loadprint-collect", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record into a run directory.
    Record(Box<RecordOptions>),
    /// Write the tables and the manifest of a recorder that was killed.
    Finish {
        /// The run directory.
        run: PathBuf,
    },
    /// List the probes with their status on this host.
    Probes(Box<ProbesOptions>),
    /// Print the host's hardware, kernel and settings as JSON, as a recording stores them in
    /// fingerprint.json.
    Fingerprint(FingerprintOptions),
    /// Time about a second of fixed work: run before and after a run, it shows whether the
    /// machine's speed changed.
    Canary(Box<CanaryOptions>),
    /// Read symbols for a recorder, which starts this program.
    #[command(hide = true)]
    Symbols {
        /// The root of procfs.
        proc_root: PathBuf,
    },
}

/// Options of `record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct RecordOptions {
    /// The run directory; created if it does not exist.
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// The folder in the run directory: server, load, load-2, …
    #[arg(long, value_name = "R", default_value = "server", value_parser = parse_role)]
    pub role: String,
    /// Time between ticks.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Take a tick of all probes at the start, at each SIGUSR1 and at the end, and no other.
    #[arg(long)]
    pub on_request: bool,
    /// Stop after this time.
    #[arg(long, value_name = "T", value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,
    /// Record the block devices of this data directory, and store the journal on another device.
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Store the journal here while recording [default: the run directory, or /dev/shm if that is
    /// on the data device].
    #[arg(long, value_name = "D")]
    pub journal_dir: Option<PathBuf>,
    /// Write the recorder's pid here after the first tick; removed when it ends.
    #[arg(long, value_name = "F")]
    pub pid_file: Option<PathBuf>,
    /// Replace this file at every tick by the newest sample of --live-probes, as JSON with mode 0600; removed
    /// when the recording ends.
    #[arg(long, value_name = "F")]
    pub live: Option<PathBuf>,
    /// The probes in the file of --live.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "cpu,mysql"
    )]
    pub live_probes: Vec<String>,
    /// The probes and their targets.
    #[command(flatten)]
    pub probes: ProbeOptions,
}

/// A further recording of `record`.
#[derive(Debug, Parser)]
pub struct Further {
    /// Its options.
    #[command(flatten)]
    pub options: RecordOptions,
}

/// Options of `fingerprint`.
#[derive(Debug, Args)]
#[command(after_help = FINGERPRINT_EXAMPLES)]
pub struct FingerprintOptions {
    /// Add the file system and the disks of this data directory.
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Add a CPU set: ROLE=LIST, such as server=0-7; may be repeated.
    #[arg(long = "cpuset", value_name = "ROLE=LIST", value_parser = parse_cpuset)]
    pub cpusets: Vec<(String, CpuSet)>,
    /// The host's files.
    #[command(flatten)]
    pub roots: Roots,
}

/// Where the files of the host are.
#[derive(Debug, Args)]
pub struct Roots {
    /// The root of procfs.
    #[arg(long, value_name = "P", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// The root of sysfs.
    #[arg(long, value_name = "S", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// The root of /etc/machine-id and of cloud-init's files in /run.
    #[arg(long, value_name = "R", default_value = "/")]
    pub root: PathBuf,
}

impl Roots {
    /// The host, by the roots of its procfs and sysfs.
    pub fn host(&self) -> Host {
        Host::new(&self.proc_root, &self.sys_root)
    }
}

/// Options of `probes`.
#[derive(Debug, Args)]
pub struct ProbesOptions {
    /// text or json: the probes on this host; markdown: the reference of all metrics
    /// (docs/metrics.md).
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The probes and their targets.
    #[command(flatten)]
    pub probes: ProbeOptions,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// JSON.
    Json,
    /// The metric reference, in Markdown.
    Markdown,
}

/// Options about probes, shared by `record` and `probes`.
#[derive(Debug, Args)]
pub struct ProbeOptions {
    /// Only these probes.
    #[arg(
        long = "probes",
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "without"
    )]
    pub only: Vec<String>,
    /// The standard set plus these probes, which are off by default.
    #[arg(long, value_name = "D", value_delimiter = ',')]
    pub with: Vec<String>,
    /// The standard set without these; a group such as `ebpf` or `mysql` means all of its probes.
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Watch a process: ROLE=PID, ROLE=@PIDFILE, ROLE=NAME (of root, the caller and system
    /// accounts) or ROLE=NAME@USER; a process with its descendants:
    /// ROLE=tree:PID; the processes of a control group: ROLE=cgroup:PATH; may be repeated.
    #[arg(long = "process", value_name = "ROLE=WHICH")]
    pub processes: Vec<ProcessTarget>,
    /// Sum interrupts over a CPU set: ROLE=LIST, such as server=0-7; may be repeated.
    #[arg(long = "cpuset", value_name = "ROLE=LIST", value_parser = parse_cpuset)]
    pub cpusets: Vec<(String, CpuSet)>,
    /// Read threads at every Nth tick and at the last one [default: about once a second].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads_every: Option<u32>,
    /// Endpoints to scrape.
    #[command(flatten)]
    pub scrape: ScrapeOptions,
    /// The host's files.
    #[command(flatten)]
    pub roots: Roots,
    /// The MySQL server.
    #[cfg(feature = "mysql")]
    #[command(flatten)]
    pub mysql: MysqlOptions,
}

impl ProbeOptions {
    /// The names on the command line.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.only.iter().chain(&self.with).chain(&self.without)
    }

    /// The options of probes that are read every `interval`.
    ///
    /// # Errors
    /// When the file of an option cannot be used, or two options contradict each other.
    pub fn options(&self, interval: Duration) -> anyhow::Result<Options> {
        let once_a_second = Duration::from_secs(1).div_duration_f64(interval).round().max(1.0) as u32;
        Ok(Options {
            processes: self.processes.clone(),
            others: vec![],
            cpusets: self.cpusets.clone(),
            threads_every: self.threads_every.unwrap_or(once_a_second),
            recorder_pid: std::process::id(),
            symbols: None,
            #[cfg(feature = "mysql")]
            mysql: self.mysql.server()?,
            scrapes: self.scrape.scrapes(interval)?,
        })
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_millis(1) || interval > Duration::from_secs(3600) {
        return Err("the interval must be between 1ms and 1h".to_owned());
    }
    Ok(interval)
}

fn parse_role(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || !text.bytes().all(fits) {
        return Err("a role is a directory name: letters, digits, - and _".to_owned());
    }
    Ok(text.to_owned())
}
