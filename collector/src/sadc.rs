//! Runs sysstat's `sadc -S XALL` in parallel to the recorder (sadc(8)): an independent witness,
//! which records the same quantities by its own code.
//!
//! It ends with the recorder, also when the recorder is killed. Without sysstat the recorder
//! continues alone.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::options::Find;
use loadprint_probes::options::ProcessTarget;
use loadprint_recording::files;
use loadprint_recording::staging;
use loadprint_recording::staging::StagingDir;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::getppid;
use rustix::process::kill_process;
use rustix::process::set_parent_process_death_signal;
use serde_json::Value;
use serde_json::json;

use crate::cli::RecordOptions;

/// The data file's name in the role's directory.
const FILE: &str = "sysstat.sa";
/// Install paths of Debian, Fedora, openSUSE and a build from source.
const INSTALL_PATHS: [&str; 5] = [
    "/usr/lib/sysstat/sadc",
    "/usr/lib64/sa/sadc",
    "/usr/lib/sa/sadc",
    "/usr/libexec/sysstat/sadc",
    "/usr/local/lib/sa/sadc",
];
/// sadc ends within milliseconds of SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A `sadc` process.
#[derive(Debug)]
pub struct Sadc {
    /// `None` without `--with-sysstat`; the reason where it could not be started.
    process: Option<Result<Running, String>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    program: PathBuf,
    interval_s: u64,
    role: PathBuf,
}

impl Sadc {
    /// Starts `sadc` if the options request it, with its data file in `staging`. A failure is a
    /// warning and is recorded.
    pub fn start(options: &RecordOptions, role: &Path, staging: &StagingDir) -> Self {
        if !options.with_sysstat {
            return Self { process: None };
        }
        let interval = options.interval;
        let interval_s = interval.as_secs_f64().ceil().max(1.0) as u64;
        let process = find_program(options.sadc.as_deref()).and_then(|program| {
            let file = staging
                .file(FILE)
                .and_then(|path| files::create(&path))
                .map_err(|error| error.to_string())?;
            let child = spawn(&program, interval_s, file)
                .map_err(|error| format!("{}: {error}", program.display()))?;
            Ok(Running {
                child,
                interval_s,
                role: role.to_owned(),
                program,
            })
        });
        match &process {
            Err(reason) => warn(&format!("{reason}; recording without sadc")),
            Ok(_) if interval != Duration::from_secs(interval_s) => warn(&format!(
                "sadc supports whole seconds only: it samples every {interval_s} s, the recorder every {interval:?}"
            )),
            Ok(_) => {}
        }
        Self {
            process: Some(process),
        }
    }

    /// The process, for the process probes to watch under the role `sadc`.
    pub fn target(&self) -> Option<ProcessTarget> {
        let running = self.process.as_ref()?.as_ref().ok()?;
        Some(ProcessTarget {
            role: "sadc".to_owned(),
            find: Find::Pid(running.child.id()),
            tree: false,
        })
    }

    /// The object `sysstat` of fingerprint.json; `None` without `--with-sysstat`.
    pub fn facts(&self) -> Option<Value> {
        Some(match self.process.as_ref()? {
            Ok(running) => json!({
                "program": running.program,
                "interval_s": running.interval_s,
                "file": FILE,
            }),
            Err(reason) => json!({"unavailable": reason}),
        })
    }

    /// Stops the process and moves its data file into the role's directory.
    pub fn end(mut self) {
        if let Some(Ok(running)) = &mut self.process {
            if let Err(error) = running.stop() {
                warn(&error);
            }
            if let Err(error) = staging::move_to_role(&running.role, FILE) {
                warn(&error.to_string());
            }
        }
    }
}

impl Drop for Sadc {
    fn drop(&mut self) {
        if let Some(Ok(running)) = &mut self.process {
            // After `end` the process is gone; before it the recording failed and has reported why.
            drop(running.stop());
        }
    }
}

impl Running {
    /// Sends SIGTERM, and SIGKILL after a timeout. An earlier exit is an error that contains the
    /// last line of stderr.
    fn stop(&mut self) -> Result<(), String> {
        let failed = |error: io::Error| format!("{}: {error}", self.program.display());
        if let Some(status) = self.child.try_wait().map_err(failed)? {
            let Some(mut stderr) = self.child.stderr.take() else {
                return Ok(());
            };
            let mut text = String::new();
            drop(stderr.read_to_string(&mut text));
            let last_line = text.lines().last().unwrap_or("no message").trim().to_owned();
            return Err(format!(
                "{} ended before the recording ({status}): {last_line}",
                self.program.display()
            ));
        }
        drop(self.child.stderr.take());
        let begun = Instant::now();
        // The pid cannot have been reused: the child was not reaped.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).map_err(|error| failed(error.into()))?;
        }
        while self.child.try_wait().map_err(failed)?.is_none() {
            if begun.elapsed() > STOP_TIMEOUT {
                self.child.kill().map_err(failed)?;
                self.child.wait().map_err(failed)?;
                break;
            }
            sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn warn(message: &str) {
    eprintln!("loadprint-collect: warning: --with-sysstat: {message}");
}

fn find_program(option: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(program) = option {
        return Ok(program.to_owned());
    }
    let installed = INSTALL_PATHS.iter().map(Path::new).find(|path| path.is_file());
    installed.map(Path::to_owned).ok_or_else(|| {
        format!(
            "no sadc at {}; install the package sysstat, or give its path with --sadc",
            INSTALL_PATHS.join(", ")
        )
    })
}

/// sadc writes to its standard output: if it opened the file by name, another user could replace
/// the file first.
fn spawn(program: &Path, interval_s: u64, file: File) -> io::Result<Child> {
    let recorder = std::process::id();
    let mut command = Command::new(program);
    command
        .args(["-S", "XALL", &interval_s.to_string()])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::piped())
        // Ctrl-C in a terminal must only reach the recorder, which ends sadc after its own last
        // tick.
        .process_group(0);
    let die_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The recorder may have ended before the call above.
        match getppid() {
            Some(parent) if parent.as_raw_nonzero().get().unsigned_abs() == recorder => Ok(()),
            _ => Err(io::Error::other("the recorder has ended")),
        }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing unless it
    // fails.
    unsafe { command.pre_exec(die_with_parent) };
    command.spawn()
}

/// Moves the data files of killed recorders into the directories of their roles.
///
/// # Errors
/// At the first file that cannot be moved; it stays in place.
pub fn move_files_to_roles(run: &Path) -> loadprint_recording::Result<()> {
    let roles = files::subdirectories(run)?;
    roles
        .iter()
        .try_for_each(|role| staging::move_to_role(role, FILE))
}
