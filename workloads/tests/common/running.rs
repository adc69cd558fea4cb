//! A generator that runs in the background, followed by the lines that it prints.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Lines;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;

use super::json_lines;
use super::signal;
use super::wait_for_end;
use super::wait_until;

/// The process and the lines of its standard output.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts the command.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads lines up to the first for which the condition is true.
    pub fn wait_for_line(&mut self, condition: impl Fn(&str) -> bool) {
        let mut read = Vec::new();
        for line in self.lines.by_ref().map(Result::unwrap) {
            if condition(&line) {
                return;
            }
            read.push(line);
        }
        panic!("the awaited line is not among: {read:#?}");
    }

    /// Reads lines up to a second with transactions: on a machine that stalls not every second has
    /// some.
    pub fn wait_for_transactions(&mut self) {
        self.wait_for_line(|line| line.contains(" tps: ") && !line.contains(" tps: 0.00 "));
    }

    /// Sends a signal, by its name without SIG.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Reads the other lines and waits for the end.
    pub fn end(self) -> Output {
        self.lines.for_each(drop);
        self.child.wait_with_output().unwrap()
    }
}

/// A generator that is paused and resumed, followed by what it records.
pub struct InTurns {
    child: Child,
    load: PathBuf,
}

impl InTurns {
    /// Starts the command, which records in `run`, and waits until it is paused.
    pub fn start(mut command: Command, run: &Path) -> Self {
        let started = Self {
            child: command
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
            load: run.join("load"),
        };
        started.wait_for_turns(1);
        started
    }

    /// The objects of a file of the load; none if it does not exist yet.
    fn lines(&self, name: &str) -> Vec<Value> {
        let file = self.load.join(name);
        if file.exists() {
            json_lines(&file)
        } else {
            Vec::new()
        }
    }

    /// Sends a signal, by its name without SIG, and waits until this number of turns is recorded.
    pub fn signal(&self, name: &str, turns: usize) {
        signal(&self.child, name);
        self.wait_for_turns(turns);
    }

    fn wait_for_turns(&self, count: usize) {
        wait_until("a turn", || self.lines("turns.jsonl").len() >= count);
    }

    /// Waits until the measured phase has begun.
    pub fn wait_for_measure(&self) {
        let measured = |line: &Value| line["phase"] == "measure";
        wait_until("measure", || self.lines("phases.jsonl").iter().any(measured));
    }

    /// Ends it with SIGTERM.
    pub fn end(self) -> Output {
        signal(&self.child, "TERM");
        wait_for_end(self.child, "the generator")
    }
}
