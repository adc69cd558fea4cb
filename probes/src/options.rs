//! Defines the options of the probes: processes, CPU sets, endpoints and the server.

use std::path::PathBuf;
use std::str::FromStr;

pub use loadprint_cpulist::CpuSet;
use nix::unistd::User;

#[cfg(feature = "mysql")]
use crate::mysql::server::Server;
use crate::scrape::target::Scrapes;
use crate::symbols::Symbols;

/// The options of the probes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processes to watch, each with a role.
    pub processes: Vec<ProcessTarget>,
    /// Those of the other recordings of this recorder, whose eBPF programs watch all of them.
    pub others: Vec<ProcessTarget>,
    /// CPU sets for which interrupts and softirqs are summed.
    pub cpusets: Vec<(String, CpuSet)>,
    /// Probes with [`Cadence::Nth`](crate::Cadence::Nth) are read at every n-th tick.
    pub threads_every: u32,
    /// The recorder itself, watched with the role `recorder`.
    pub recorder_pid: u32,
    /// The helper that reads symbols, if a probe needs it; watched with the role `recorder`.
    pub symbols: Option<Symbols>,
    /// The MySQL server to query.
    #[cfg(feature = "mysql")]
    pub mysql: Option<&'static Server>,
    /// Endpoints to scrape.
    pub scrapes: Scrapes,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            processes: vec![],
            others: vec![],
            cpusets: vec![],
            threads_every: 1,
            recorder_pid: std::process::id(),
            symbols: None,
            #[cfg(feature = "mysql")]
            mysql: None,
            scrapes: Scrapes::default(),
        }
    }
}

impl Options {
    /// The processes to watch, including the recorder.
    #[must_use]
    pub fn with_recorder(&self) -> Vec<ProcessTarget> {
        let helper = self.symbols.as_ref().map(Symbols::pid);
        let recorder = [Some(self.recorder_pid), helper].into_iter().flatten();
        let recorder = recorder.map(|pid| ProcessTarget {
            role: "recorder".to_owned(),
            find: Find::Pid(pid),
            tree: false,
        });
        self.processes.iter().cloned().chain(recorder).collect()
    }
}

/// A process and its role: `ROLE=PID`, `ROLE=@PIDFILE`, `ROLE=NAME`, `ROLE=NAME@USER` or
/// `ROLE=cgroup:PATH`; `ROLE=tree:…` includes its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTarget {
    /// The role in the tables.
    pub role: String,
    /// How to find it.
    pub find: Find,
    /// Whether its descendants have the role too, for a generator that runs another program.
    pub tree: bool,
}

/// How a process is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find {
    /// By process ID.
    Pid(u32),
    /// By the process ID in a file, which can be created after the recording starts.
    PidFile(PathBuf),
    /// All processes with this name in `/proc/PID/comm` that belong to the user with this ID; to
    /// root, the caller or a system account, if it is `None`: every user can start a program with
    /// any name.
    Name(String, Option<u32>),
    /// All processes of a control group and of the groups below it: its directory, or the path
    /// below `/sys/fs/cgroup`.
    Cgroup(PathBuf),
}

impl FromStr for ProcessTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (role, target) = split_role(
            text,
            "ROLE=PID, ROLE=@PIDFILE, ROLE=NAME, ROLE=NAME@USER or ROLE=cgroup:PATH",
        )?;
        let (tree, target) = match target.strip_prefix("tree:") {
            Some(rest) => (true, rest),
            None => (false, target),
        };
        let find = if let Some(path) = target.strip_prefix('@') {
            Find::PidFile(PathBuf::from(path))
        } else if let Some(path) = target.strip_prefix("cgroup:") {
            Find::Cgroup(PathBuf::from(path))
        } else if let Ok(pid) = target.parse() {
            Find::Pid(pid)
        } else if let Some((name, user)) = target.rsplit_once('@') {
            Find::Name(name.to_owned(), Some(user_id(user)?))
        } else {
            Find::Name(target.to_owned(), None)
        };
        Ok(Self {
            role: role.to_owned(),
            find,
            tree,
        })
    }
}

/// The ID of a user by its name or number.
fn user_id(user: &str) -> Result<u32, String> {
    if let Ok(id) = user.parse() {
        return Ok(id);
    }
    match User::from_name(user) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        _ => Err(format!(
            "there is no user `{user}`; name one of `getent passwd`, or a user ID"
        )),
    }
}

/// Parses `ROLE=LIST` of the command line.
///
/// # Errors
/// When the role is missing or the list is malformed.
pub fn parse_cpuset(text: &str) -> Result<(String, CpuSet), String> {
    let (role, list) = split_role(text, "ROLE=LIST, such as server=0-3")?;
    Ok((role.to_owned(), list.parse()?))
}

fn split_role<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    match text.split_once('=') {
        Some((role, rest)) if !role.is_empty() && !rest.is_empty() => Ok((role, rest)),
        _ => Err(format!("`{text}` is not of the form {form}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sets_have_a_role_and_a_list() {
        let (role, set) = parse_cpuset("server=0-2,8,2").unwrap();
        assert_eq!((role.as_str(), set.to_string().as_str()), ("server", "0-2,8"));
        assert!(set.contains(8) && !set.contains(3));
        assert!(parse_cpuset("server=3-1").unwrap_err().contains("CPU list"));
        assert!(parse_cpuset("0-3").unwrap_err().contains("ROLE=LIST"));
    }

    #[test]
    fn processes_are_named_by_id_file_name_and_group() {
        let find = |text: &str| text.parse::<ProcessTarget>().unwrap().find;
        assert_eq!(find("server=42"), Find::Pid(42));
        assert_eq!(
            find("server=@/run/mysqld.pid"),
            Find::PidFile("/run/mysqld.pid".into())
        );
        assert_eq!(find("server=mysqld"), Find::Name("mysqld".into(), None));
        assert_eq!(find("server=mysqld@root"), Find::Name("mysqld".into(), Some(0)));
        assert_eq!(
            find("server=mysqld@1001"),
            Find::Name("mysqld".into(), Some(1001))
        );
        let error = "server=mysqld@no such user".parse::<ProcessTarget>().unwrap_err();
        assert!(error.contains("there is no user `no such user`"), "{error}");
        assert_eq!(
            find("server=cgroup:/sys/fs/cgroup/mysql"),
            Find::Cgroup("/sys/fs/cgroup/mysql".into())
        );
        assert!("mysqld".parse::<ProcessTarget>().is_err());
    }
}
