//! Runs the process of an external generator in a separate process group and returns its output
//! line by line. Forwards signals of this process to the group; the group ends with this process.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Child as Process;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitId;
use rustix::process::WaitIdOptions;
use rustix::process::getpid;
use rustix::process::getppid;
use rustix::process::kill_process_group;
use rustix::process::set_parent_process_death_signal;
use rustix::process::test_kill_process_group;
use rustix::process::waitid;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;

use crate::signals::SignalHandlers;

/// Timeout between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
/// How long output of other processes is read after the generator has exited.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer lines are truncated: a generator may print a statement of half a megabyte.
const MAX_LINE: usize = 64 * 1024;

/// A stream of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// What happened to the process.
#[derive(Debug)]
pub enum ChildEvent {
    /// It printed a line.
    Line(Stream, String),
    /// The deadline has passed.
    Due,
    /// This process received a signal; SIGINT and SIGTERM were forwarded.
    Signal(i32),
    /// It has exited and its output is read.
    Ended(ExitStatus),
}

enum RawEvent {
    Line(Stream, String),
    Closed,
    Exited,
    Signal(i32),
}

/// A running process.
#[derive(Debug)]
pub struct Child {
    process: Process,
    group: Pid,
    events: Receiver<RawEvent>,
    handlers: Option<SignalHandlers>,
    open: usize,
    ended: Option<(ExitStatus, Instant)>,
}

impl Child {
    /// Starts it. The calling thread must live as long as the process: the parent death signal
    /// refers to the thread.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(mut command: Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let parent = getpid();
        // Programs get the password in a private file; an environment is easier to read for others.
        command
            .env_remove("MYSQL_PWD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: prctl and getppid are async-signal-safe and touch no memory of the parent.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the call.
                if getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(rustix::io::Errno::SRCH.into())
                }
            });
        }
        let (sender, events) = mpsc::channel();
        let mut process = command.spawn().with_context(|| format!("start {program}"))?;
        let group = Pid::from_child(&process);
        let signal_sender = sender.clone();
        let handlers = SignalHandlers::install(&[SIGINT, SIGTERM, SIGUSR1, SIGUSR2], move |signal| {
            // Before the program ends of it, so that its end is known to follow from the signal.
            signal_sender.send(RawEvent::Signal(signal)).ok();
            if matches!(signal, SIGINT | SIGTERM)
                && let Some(signal) = Signal::from_named_raw(signal)
            {
                kill_process_group(group, signal).ok();
            }
        })?;
        let exit_sender = sender.clone();
        start_thread("child-exit", move || {
            // Waits without reaping, so that the pid stays in use.
            waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok();
            exit_sender.send(RawEvent::Exited).ok();
        })?;
        if let Some(out) = process.stdout.take() {
            let sender = sender.clone();
            start_thread("child-stdout", move || read(out, Stream::Out, &sender))?;
        }
        if let Some(error) = process.stderr.take() {
            start_thread("child-stderr", move || read(error, Stream::Error, &sender))?;
        }
        Ok(Self {
            process,
            group,
            events,
            handlers: Some(handlers),
            open: 2,
            ended: None,
        })
    }

    /// Waits for the next event, until `due`.
    ///
    /// # Errors
    /// If the exit status cannot be read.
    pub fn next(&mut self, due: Option<Instant>) -> Result<ChildEvent> {
        loop {
            // A grandchild may keep the pipes open.
            let last = self.ended.map(|(_, at)| at + OUTPUT_TIMEOUT);
            if let Some((status, _)) = self.ended
                && (self.open == 0 || last.is_some_and(|last| last <= Instant::now()))
            {
                return Ok(ChildEvent::Ended(status));
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                return Ok(ChildEvent::Due);
            }
            let event = match due.into_iter().chain(last).min() {
                None => self.events.recv().ok(),
                Some(limit) => self
                    .events
                    .recv_timeout(limit.saturating_duration_since(Instant::now()))
                    .ok(),
            };
            match event {
                Some(RawEvent::Line(stream, line)) => return Ok(ChildEvent::Line(stream, line)),
                Some(RawEvent::Signal(signal)) => return Ok(ChildEvent::Signal(signal)),
                Some(RawEvent::Closed) => self.open -= 1,
                Some(RawEvent::Exited) => self.reap()?,
                None => {}
            }
        }
    }

    fn reap(&mut self) -> Result<()> {
        if self.ended.is_none() {
            let status = self
                .process
                .try_wait()
                .context("wait for the external generator")?;
            self.ended = status.map(|status| (status, Instant::now()));
        }
        Ok(())
    }

    /// Ends the whole group: SIGTERM, then SIGKILL after five seconds.
    ///
    /// # Errors
    /// If the exit status cannot be read.
    pub fn end(&mut self) -> Result<()> {
        kill_process_group(self.group, Signal::TERM).ok();
        let limit = Instant::now() + TERM_TIMEOUT;
        while Instant::now() < limit {
            self.reap()?;
            if test_kill_process_group(self.group).is_err() {
                return Ok(());
            }
            // Further output is discarded, so that the pipe does not fill up.
            self.events.recv_timeout(Duration::from_millis(5)).ok();
        }
        kill_process_group(self.group, Signal::KILL).ok();
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.handlers = None;
        // Also after a normal exit, so that no background process remains.
        if let Err(error) = self.end() {
            eprintln!("loadprint-load: {error:#}");
        }
        if self.ended.is_none() {
            self.process.wait().map(drop).unwrap_or_default();
        }
    }
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(body).map(drop).context("start a thread")
}

fn read(stream: impl Read, kind: Stream, sender: &Sender<RawEvent>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        line.truncate(MAX_LINE);
        let text = String::from_utf8_lossy(&line)
            .trim_matches(['\n', '\r'])
            .to_owned();
        if sender.send(RawEvent::Line(kind, text)).is_err() {
            return;
        }
    }
    sender.send(RawEvent::Closed).ok();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Child::start(command).unwrap()
    }

    #[test]
    fn lines_of_both_streams_and_the_status_arrive() {
        let mut child = shell("echo one; echo two >&2; exit 3");
        let mut lines = Vec::new();
        let status = loop {
            match child.next(None).unwrap() {
                ChildEvent::Line(stream, line) => lines.push((stream == Stream::Out, line)),
                ChildEvent::Ended(status) => break status,
                other => panic!("{other:?}"),
            }
        };
        lines.sort();
        assert_eq!(lines, [(false, "two".to_owned()), (true, "one".to_owned())]);
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn the_whole_group_is_killed_even_if_it_ignores_sigterm() {
        let mut child = shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000");
        let ChildEvent::Line(_, grandchild) = child.next(None).unwrap() else {
            panic!("no line")
        };
        drop(child);
        // A killed process is gone, or a zombie until init reaps it.
        let gone = || {
            let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ") || state.contains(") X ")
        };
        let limit = Instant::now() + Duration::from_secs(300);
        while !gone() {
            assert!(Instant::now() < limit, "{grandchild} is still there");
            thread::yield_now();
        }
    }

    #[test]
    fn waiting_ends_at_the_deadline() {
        let mut child = shell("sleep 1000");
        assert!(matches!(
            child
                .next(Some(Instant::now() + Duration::from_millis(20)))
                .unwrap(),
            ChildEvent::Due
        ));
    }
}
