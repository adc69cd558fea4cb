//! The command line: verbs, options and their help.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::SystemTime;

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
use crate::cli_scrape::ScrapeOptions;
use crate::http::Listening;
#[cfg(feature = "mysql")]
use crate::mysql::MysqlOptions;

const EXAMPLES: &str = "\
Examples:
  loadprint-collect record --out runs/try --duration 60s
  loadprint-collect record --out RUN --process server=@/run/mysqld/mysqld.pid --cpuset server=0-7 --data-dir /var/lib/mysql
  loadprint-collect finish RUN          after the recorder was killed
  loadprint-collect probes              what can be read here, and why not
  loadprint-collect serve               for Prometheus: http://127.0.0.1:9779/metrics";

const RECORD_EXAMPLES: &str = "\
Records until SIGTERM or SIGINT, --duration or --deadline, then writes the tables. A recorder that is killed loses the tick
it was writing; `loadprint-collect finish RUN` writes the tables then. SIGUSR1 asks for one tick of all probes, also of those that are read at the
ends only (mysql_digests): where a window begins or ends.

Examples:
  loadprint-collect record --out runs/try --duration 60s
  loadprint-collect record --out RUN --role load --process load=sysbench --interval 100ms
  loadprint-collect record --out RUN --probes cpu,disk,process --process server=4242
  loadprint-collect record --out RUN --listen 127.0.0.1:9779      and Prometheus may scrape what the last tick read";

const SERVE_EXAMPLES: &str = "\
Reads the probes whenever it is scraped, until SIGTERM or SIGINT. Metrics that node_exporter has too have its names, labels and
values. OpenMetrics 1.0 and Prometheus text 0.0.4 are spoken. TLS and passwords: --web-config-file, in the format of Prometheus's
exporters, such as

  tls_server_config:
    cert_file: server.crt
    key_file: server.key
  basic_auth_users:
    prometheus: $2y$10$…            from: htpasswd -nBC 10 prometheus

Examples:
  loadprint-collect serve
  loadprint-collect serve --listen 127.0.0.1:9779 --listen '[::1]:9779' --process server=mysqld
  loadprint-collect serve --listen 0.0.0.0:9779 --web-config-file /etc/loadprint/web.yml";

const FINGERPRINT_EXAMPLES: &str = "\
Examples:
  loadprint-collect fingerprint --data-dir /var/lib/mysql --cpuset server=0-7 --cpuset load=8-15
  loadprint check --data-dir /var/lib/mysql      judges it";

/// Records what a host does.
#[derive(Debug, Parser)]
#[command(name = "loadprint-collect", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record into a run directory.
    Record(Box<RecordOptions>),
    /// Write the tables of leftover journals, and the manifest.
    Finish {
        /// The run directory.
        run: PathBuf,
    },
    /// Let Prometheus scrape the probes, without a recording.
    Serve(Box<ServeOptions>),
    /// List the probes with their status on this host.
    Probes(Box<ProbesOptions>),
    /// Print the host's hardware, kernel and settings as JSON: what a recording keeps in fingerprint.json.
    Fingerprint(FingerprintOptions),
    /// Do about a second of fixed work and say what it took: before and after a run it tells whether the machine was the same.
    Canary(CanaryOptions),
}

/// Options of `record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct RecordOptions {
    /// The run directory; made if it is not there.
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// The folder in the run directory: server, load, load-2, …
    #[arg(long, value_name = "R", default_value = "server", value_parser = parse_role)]
    pub role: String,
    /// Time between ticks.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Stop after this time.
    #[arg(long, value_name = "T", value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,
    /// Stop at the latest after this time (90s, 2h) or at this time (2026-11-21T12:00:00Z), whatever happens to the caller.
    #[arg(long, value_name = "T", value_parser = parse_deadline)]
    pub deadline: Option<Deadline>,
    /// Resolve the block devices of this data directory, and keep the journal off them.
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Where the journal goes while recording [default: the run directory, or /dev/shm if that lies on the data device].
    #[arg(long, value_name = "D")]
    pub journal_dir: Option<PathBuf>,
    /// Appears after the first sample with the recorder's process number, and goes when it ends.
    #[arg(long, value_name = "F")]
    pub pid_file: Option<PathBuf>,
    /// Run sysstat's sadc -S XALL beside the recorder, as an independent witness: RUN/R/sysstat.sa.
    #[arg(long)]
    pub with_sysstat: bool,
    /// Where sadc is [default: where distributions have it].
    #[arg(long, value_name = "PATH", requires = "with_sysstat")]
    pub sadc: Option<PathBuf>,
    /// Who may scrape it meanwhile.
    #[command(flatten)]
    pub web: WebOptions,
    /// Which probes, and what they watch.
    #[command(flatten)]
    pub probes: ProbeOptions,
}

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeOptions {
    /// Scrapes that come within this time of one another get the same values.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = humantime::parse_duration)]
    pub min_interval: Duration,
    /// Where it listens.
    #[command(flatten)]
    pub web: WebOptions,
    /// Which probes, and what they watch.
    #[command(flatten)]
    pub probes: ProbeOptions,
}

/// Options of both verbs that serve `/metrics`.
#[derive(Debug, Args)]
pub struct WebOptions {
    /// Serve /metrics at this address; may be repeated [serve without it: 127.0.0.1:9779].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,
    /// TLS and passwords, in the format of Prometheus's exporters.
    #[arg(long, value_name = "F")]
    pub web_config_file: Option<PathBuf>,
}

impl WebOptions {
    /// Listens, where an address was named.
    ///
    /// # Errors
    /// When an address is taken, or the configuration file cannot be used.
    pub fn listen(&self) -> anyhow::Result<Option<Listening>> {
        if self.listen.is_empty() {
            anyhow::ensure!(
                self.web_config_file.is_none(),
                "--web-config-file says how, and nothing is served: add --listen 127.0.0.1:{PORT}"
            );
            return Ok(None);
        }
        Listening::bind(&self.listen, self.web_config_file.as_deref()).map(Some)
    }

    /// Listens, on the loopback device where no address was named.
    ///
    /// # Errors
    /// As [`WebOptions::listen`].
    pub fn listen_anyway(&self) -> anyhow::Result<Listening> {
        let default = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))];
        let addresses = if self.listen.is_empty() {
            &default[..]
        } else {
            &self.listen
        };
        Listening::bind(addresses, self.web_config_file.as_deref())
    }
}

/// The port of `serve`.
const PORT: u16 = 9779;

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "not an address with a port, such as 127.0.0.1:9779 or [::1]:9779".to_owned())
}

/// Options of `fingerprint`.
#[derive(Debug, Args)]
#[command(after_help = FINGERPRINT_EXAMPLES)]
pub struct FingerprintOptions {
    /// Say which file system and disks this data directory lies on.
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Keep a CPU set with it: ROLE=LIST, such as server=0-7; may be repeated.
    #[arg(long = "cpuset", value_name = "ROLE=LIST", value_parser = parse_cpuset)]
    pub cpusets: Vec<(String, CpuSet)>,
    /// The root of procfs.
    #[arg(long, value_name = "P", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// The root of sysfs.
    #[arg(long, value_name = "S", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// The root under which /etc/machine-id and what cloud-init left in /run lie.
    #[arg(long, value_name = "R", default_value = "/")]
    pub root: PathBuf,
}

/// Options of `probes`.
#[derive(Debug, Args)]
pub struct ProbesOptions {
    /// text or json; markdown: what the probes of this program declare, whatever the host has (docs/metrics.md).
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Which probes, and what they watch.
    #[command(flatten)]
    pub probes: ProbeOptions,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person.
    Text,
    /// For a program.
    Json,
    /// The metric reference.
    Markdown,
}

/// Options that both `record` and `probes` have.
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
    /// The standard set, and these that are off otherwise.
    #[arg(long, value_name = "D", value_delimiter = ',')]
    pub with: Vec<String>,
    /// All probes but these; a group such as `ebpf` or `mysql` means all of it.
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Watch a process: ROLE=PID, ROLE=@PIDFILE or ROLE=NAME, with its descendants as ROLE=tree:PID, or a control group's
    /// as ROLE=cgroup:PATH; may be repeated.
    #[arg(long = "process", value_name = "ROLE=WHICH")]
    pub processes: Vec<ProcessTarget>,
    /// Sum interrupts over a CPU set: ROLE=LIST, such as server=0-7; may be repeated.
    #[arg(long = "cpuset", value_name = "ROLE=LIST", value_parser = parse_cpuset)]
    pub cpusets: Vec<(String, CpuSet)>,
    /// Record every interrupt line on every CPU.
    #[arg(long)]
    pub full_matrix: bool,
    /// Record partitions beside whole disks.
    #[arg(long)]
    pub partitions: bool,
    /// Read threads at every n-th tick, and at the last one [default: about once a second].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads_every: Option<u32>,
    /// Endpoints of metrics.
    #[command(flatten)]
    pub scrape: ScrapeOptions,
    /// The root of procfs.
    #[arg(long, value_name = "P", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// The root of sysfs.
    #[arg(long, value_name = "S", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// The root under which /etc/machine-id and what cloud-init left in /run lie.
    #[arg(long, value_name = "R", default_value = "/")]
    pub root: PathBuf,
    /// The MySQL server.
    #[cfg(feature = "mysql")]
    #[command(flatten)]
    pub mysql: MysqlOptions,
}

impl ProbeOptions {
    /// The roots.
    pub fn host(&self) -> Host {
        Host::new(&self.proc_root, &self.sys_root)
    }

    /// What the probes are asked for, when they are read every `interval`.
    ///
    /// # Errors
    /// When a file that an option names cannot be used, or two of the options contradict each other.
    pub fn options(&self, interval: Duration, data_dir: Option<&Path>) -> anyhow::Result<Options> {
        let once_a_second = Duration::from_secs(1).div_duration_f64(interval).round().max(1.0) as u32;
        Ok(Options {
            processes: self.processes.clone(),
            cpusets: self.cpusets.clone(),
            full_matrix: self.full_matrix,
            partitions: self.partitions,
            threads_every: self.threads_every.unwrap_or(once_a_second),
            recorder_pid: std::process::id(),
            data_dir: data_dir.map(Path::to_owned),
            #[cfg(feature = "mysql")]
            mysql: self.mysql.server()?,
            scrapes: self.scrape.scrapes(interval)?,
        })
    }
}

/// When to stop whatever happens.
#[derive(Clone, Copy, Debug)]
pub enum Deadline {
    /// So long after the start.
    After(Duration),
    /// At this time.
    At(SystemTime),
}

impl Deadline {
    /// Time left from now.
    pub fn left(self) -> Duration {
        match self {
            Self::After(duration) => duration,
            Self::At(time) => time.duration_since(SystemTime::now()).unwrap_or_default(),
        }
    }
}

fn parse_deadline(text: &str) -> Result<Deadline, String> {
    if let Ok(duration) = humantime::parse_duration(text) {
        return Ok(Deadline::After(duration));
    }
    let wrong =
        |_| format!("`{text}` is neither a time span such as 2h nor a time such as 2026-11-21T12:00:00Z");
    humantime::parse_rfc3339_weak(text)
        .map(Deadline::At)
        .map_err(wrong)
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_millis(1) || interval > Duration::from_secs(3600) {
        return Err("the interval must lie between 1ms and 1h".to_owned());
    }
    Ok(interval)
}

fn parse_role(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || !text.bytes().all(fits) {
        return Err("a role is a folder's name: letters, digits, - and _".to_owned());
    }
    Ok(text.to_owned())
}
