//! An independent witness beside the recorder: sysstat's `sadc -S XALL`, whose file says the same things in its own words (sadc(8)).
//!
//! It lives as long as the recorder, also when that is killed. Without sysstat the recording goes on.

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
use loadprint_recording::files::Directory;
use loadprint_recording::staging;
use loadprint_recording::staging::Place;
use rustix::fs::FileType;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::getppid;
use rustix::process::kill_process;
use rustix::process::set_parent_process_death_signal;
use serde_json::Value;
use serde_json::json;

use crate::cli::RecordOptions;

/// Its file in the role's directory.
const FILE: &str = "sysstat.sa";
/// Where Debian, Fedora, openSUSE and a build from source have it.
const PLACES: [&str; 5] = [
    "/usr/lib/sysstat/sadc",
    "/usr/lib64/sa/sadc",
    "/usr/lib/sa/sadc",
    "/usr/libexec/sysstat/sadc",
    "/usr/local/lib/sa/sadc",
];
/// Far longer than it takes to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A `sadc` that runs, or none.
#[derive(Debug)]
pub struct Witness {
    /// `None` where nobody asked for one.
    running: Option<Result<Running, String>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    program: PathBuf,
    interval_s: u64,
    role: Directory,
}

impl Witness {
    /// Starts `sadc` if it is asked for. Its file is at `place`; the directory `role` holds it or a link to it. That it cannot is said,
    /// and no error.
    pub fn beside(options: &RecordOptions, role: &Directory, place: &Place) -> Self {
        if !options.with_sysstat {
            return Self { running: None };
        }
        let interval = options.interval;
        let interval_s = interval.as_secs_f64().ceil().max(1.0) as u64;
        let running = find(options.sadc.as_deref()).and_then(|program| {
            let file = place
                .file(FILE)
                .and_then(|file| file.create())
                .map_err(|error| error.to_string())?;
            let child = spawn(&program, interval_s, file)
                .map_err(|error| format!("{}: {error}", program.display()))?;
            Ok(Running {
                child,
                interval_s,
                role: role.clone(),
                program,
            })
        });
        match &running {
            Err(reason) => say(&format!("{reason}; the recording goes on without it")),
            Ok(_) if interval != Duration::from_secs(interval_s) => say(&format!(
                "sadc takes whole seconds: it samples every {interval_s} s, the recorder every {interval:?}"
            )),
            Ok(_) => {}
        }
        Self {
            running: Some(running),
        }
    }

    /// Its process, to be watched under the role `sadc`.
    pub fn target(&self) -> Option<ProcessTarget> {
        let running = self.running.as_ref()?.as_ref().ok()?;
        Some(ProcessTarget {
            role: "sadc".to_owned(),
            find: Find::Pid(running.child.id()),
            tree: false,
        })
    }

    /// What the fingerprint says of it, if it was asked for.
    pub fn facts(&self) -> Option<Value> {
        Some(match self.running.as_ref()? {
            Ok(running) => json!({
                "program": running.program,
                "interval_s": running.interval_s,
                "file": FILE,
            }),
            Err(reason) => json!({"unavailable": reason}),
        })
    }

    /// Ends it and brings its file into the role's directory.
    pub fn end(mut self) {
        if let Some(Ok(running)) = &mut self.running {
            if let Err(error) = running.stop() {
                say(&error);
            }
            if let Err(error) = staging::bring_home(&running.role, FILE) {
                say(&error.to_string());
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if let Some(Ok(running)) = &mut self.running {
            // After `end` there is nothing to stop; before it the recording failed and has said why.
            drop(running.stop());
        }
    }
}

impl Running {
    /// Asks it to end, and kills it if it does not; an end before that is an error with its own words.
    fn stop(&mut self) -> Result<(), String> {
        let text = |error: io::Error| format!("{}: {error}", self.program.display());
        if let Some(status) = self.child.try_wait().map_err(text)? {
            let Some(mut stderr) = self.child.stderr.take() else {
                return Ok(());
            };
            let mut said = String::new();
            drop(stderr.read_to_string(&mut said));
            let said = said.lines().last().unwrap_or("it said nothing").trim().to_owned();
            return Err(format!(
                "{} ended before the recording ({status}): {said}",
                self.program.display()
            ));
        }
        drop(self.child.stderr.take());
        let begun = Instant::now();
        // A child that was not waited for yet keeps its number.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).map_err(|error| text(error.into()))?;
        }
        while self.child.try_wait().map_err(text)?.is_none() {
            if begun.elapsed() > PATIENCE {
                self.child.kill().map_err(text)?;
                self.child.wait().map_err(text)?;
                break;
            }
            sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn say(what: &str) {
    eprintln!("loadprint-collect: --with-sysstat: {what}");
}

fn find(asked: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(program) = asked {
        return Ok(program.to_owned());
    }
    let found = PLACES.iter().map(Path::new).find(|path| path.is_file());
    found.map(Path::to_owned).ok_or_else(|| {
        format!(
            "sadc is in none of {}; install the package sysstat, or name it with --sadc",
            PLACES.join(", ")
        )
    })
}

/// sadc writes to its standard output: a file that it opened by name itself could be another one by then.
fn spawn(program: &Path, interval_s: u64, file: File) -> io::Result<Child> {
    let recorder = std::process::id();
    let mut command = Command::new(program);
    command
        .args(["-S", "XALL", &interval_s.to_string()])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::piped())
        // Ctrl-C in a terminal is the recorder's: it ends sadc after its own last tick.
        .process_group(0);
    let die_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The recorder may have been gone before the line above.
        match getppid() {
            Some(parent) if parent.as_raw_nonzero().get().unsigned_abs() == recorder => Ok(()),
            _ => Err(io::Error::other("the recorder is gone")),
        }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing unless it fails.
    unsafe { command.pre_exec(die_with_parent) };
    command.spawn()
}

/// What recorders that were killed left elsewhere, for every role of a run.
///
/// # Errors
/// At the first file that cannot be brought; it stays where it is.
pub fn bring_all_home(run: &Directory) -> loadprint_recording::Result<()> {
    for (name, kind) in run.entries()? {
        if kind == FileType::Directory {
            staging::bring_home(&run.sub(&name)?, FILE)?;
        }
    }
    Ok(())
}
