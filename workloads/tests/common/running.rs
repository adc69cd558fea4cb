//! A generator that runs in the background, followed by the lines that it prints.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Lines;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use super::signal;

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
