//! Starts the real binary as root in a new state directory for each test, and ends it with the
//! test. Conditions are polled with one deadline; no test sleeps for a fixed time.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::fs::Permissions;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

/// The deadline of every wait, far longer than any machine needs.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// A started supervisor.
#[derive(Debug)]
pub struct Supervisor {
    /// Parent of the state directory and scratch space.
    pub scratch: TempDir,
    /// The state directory.
    pub dir: PathBuf,
    /// The daemon.
    pub pid: u32,
    /// The daemon's parent.
    pub guard: u32,
    /// The reply of `start`.
    pub ready: Value,
}

impl Supervisor {
    /// Starts one with a long lease.
    pub fn start() -> Self {
        Self::start_with(&["--lease", "600s"])
    }

    /// Starts one with other options.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_in(scratch(), options)
    }

    /// Starts one in a scratch directory that may contain resources of an earlier one.
    pub fn start_in(scratch: TempDir, options: &[&str]) -> Self {
        let dir = scratch.path().join("state");
        let ready = supervise("start", &dir, options).unwrap();
        let pid = number(&ready["pid"]);
        Self {
            scratch,
            dir,
            pid,
            guard: parent_of(pid),
            ready,
        }
    }

    /// Runs a command; returns the printed JSON, or the line of the error.
    pub fn ask(&self, verb: &str, arguments: &[&str]) -> Result<Value, String> {
        supervise(verb, &self.dir, arguments)
    }

    /// Starts a shell script under a name; returns its pid.
    pub fn run_script(&self, name: &str, options: &[&str], script: &str) -> u32 {
        self.try_script(name, options, script).unwrap()
    }

    /// As `run_script`; returns the line of the error.
    pub fn try_script(&self, name: &str, options: &[&str], script: &str) -> Result<u32, String> {
        let arguments = [&[name], options, &["--", "sh", "-c", script]].concat();
        Ok(number(&self.ask("run", &arguments)?["pid"]))
    }

    /// The reply of `status`.
    pub fn status(&self) -> Value {
        self.ask("status", &[]).unwrap()
    }

    /// Makes a network namespace of two addresses with prefix lengths.
    pub fn netns(&self, name: &str, host: &str, peer: &str) -> Result<Value, String> {
        self.ask("netns", &[name, "--host-address", host, "--peer-address", peer])
    }

    /// Waits until the process has ended; returns its report.
    pub fn wait(&self, name: &str) -> Value {
        let report = self.ask("wait", &[name, "--for", "300s"]).unwrap();
        assert_ne!(report["state"], "running", "{report}");
        report
    }

    /// A process's output so far.
    pub fn output(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(format!("{name}.stdout"))).unwrap_or_default()
    }

    /// Waits for a line of output with a pid.
    pub fn printed_pid(&self, name: &str) -> u32 {
        until("a pid in the output", || {
            let output = self.output(name);
            output
                .strip_suffix('\n')
                .and_then(|text| text.lines().last()?.trim().parse().ok())
        })
    }

    /// status.json, once the supervisor has ended.
    pub fn ended(&self) -> Value {
        until("the supervisor has ended", || {
            let gone = !is_alive(self.pid) && !is_alive(self.guard);
            gone.then(|| serde_json::from_slice(&fs::read(self.dir.join("status.json")).ok()?).ok())
                .flatten()
        })
    }

    /// Leaves the supervisor's resources and returns the scratch directory for the next one.
    pub fn into_scratch(mut self) -> TempDir {
        self.dir = PathBuf::new();
        std::mem::replace(&mut self.scratch, scratch())
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if self.dir.exists() {
            drop(supervise("end", &self.dir, &[]));
        }
    }
}

/// Prints the pid of a grandchild in another session, whose parent has exited.
pub const ESCAPE: &str = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; exec sleep 1000";

/// Creates a directory with this mode.
pub fn create_dir(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A scratch directory of root.
pub fn scratch() -> TempDir {
    assert!(
        rustix::process::geteuid().is_root(),
        "these tests need root: run them with sudo"
    );
    tempfile::tempdir().unwrap()
}

/// Runs the binary.
pub fn supervise(verb: &str, dir: &Path, arguments: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-supervise"));
    command.arg(verb).arg("--state").arg(dir).args(arguments);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if output.status.success() {
        assert_eq!(stderr, "");
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    Err(stderr
        .strip_prefix("loadprint-supervise: ")
        .unwrap()
        .trim_end()
        .to_owned())
}

/// Polls until there is a value.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Polls until the process has exited (it may be a zombie).
pub fn until_dead(pid: u32) {
    until(&format!("process {pid} is gone"), || {
        (!is_alive(pid)).then_some(())
    });
}

/// True if the pid is a process of which a thread has not exited. The main thread of a killed process can be
/// a zombie while others still have its files and locks open.
pub fn is_alive(pid: u32) -> bool {
    stat_fields(pid, [3, 20]).is_some_and(|[state, threads]| state != "Z" || threads != "1")
}

/// Sends SIGSTOP and waits until the process has stopped.
pub fn stop(pid: u32) {
    signal(pid, rustix::process::Signal::STOP);
    until("it has stopped", || {
        stat_fields(pid, [3])
            .is_some_and(|[state]| state == "T")
            .then_some(())
    });
}

/// The parent's pid.
pub fn parent_of(pid: u32) -> u32 {
    let [parent] = stat_fields(pid, [4]).unwrap();
    parent.parse().unwrap()
}

/// Fields of /proc/PID/stat by their numbers, from 3 on, at one moment.
pub fn stat_fields<const N: usize>(pid: u32, numbers: [usize; N]) -> Option<[String; N]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some(numbers.map(|number| fields[number - 3].to_owned()))
}

/// Sends a signal.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A JSON number as a pid.
pub fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// True if the host has a network interface of this name.
pub fn has_interface(name: &str) -> bool {
    fs::symlink_metadata(format!("/sys/class/net/{name}")).is_ok()
}

/// A network 198.19.N.0/24, reserved for one test of this machine. Campaigns use networks in
/// 198.18.
#[derive(Debug)]
pub struct Network {
    number: u8,
    _reservation: UnixListener,
}

impl Network {
    pub fn reserve() -> Self {
        let reserved = |number: u8| {
            let address = SocketAddr::from_abstract_name(format!("loadprint-test-network-{number}")).unwrap();
            let reservation = UnixListener::bind_addr(&address).ok()?;
            Some(Self {
                number,
                _reservation: reservation,
            })
        };
        until("a network that no other test has", || {
            (0..=u8::MAX).find_map(reserved)
        })
    }

    /// An address in it.
    pub fn address(&self, host: u8) -> String {
        format!("198.19.{}.{host}", self.number)
    }

    /// An address in it with a prefix length.
    pub fn cidr(&self, host: u8, length: u8) -> String {
        format!("{}/{length}", self.address(host))
    }
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
