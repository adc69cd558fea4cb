//! Starts a process whose files in `/proc` block their readers: it hangs in execve(2), in which it closes a file
//! of fuse(4).
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

/// The process that serves the file system; killed when it is dropped.
pub struct Hang {
    server: Child,
    /// The program, which takes an empty directory and prints the ID of the process that hangs.
    pub program: PathBuf,
    /// The process that hangs.
    pub pid: String,
}

impl Hang {
    /// Starts it, with its files in `dir`; `None` without `/dev/fuse`.
    pub fn start(dir: &Path) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("/dev/fuse is missing: a hang in execve(2) is not tested");
            return None;
        }
        let (source, program, mount) = (dir.join("hang.c"), dir.join("hang"), dir.join("mount"));
        fs::write(&source, include_str!("../hang.c")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg("-o").args([&program, &source]);
        assert!(compiler.status().unwrap().success());
        fs::create_dir(&mount).unwrap();
        let mut command = Command::new("unshare");
        command.arg("--mount").args([&program, &mount]);
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut pid = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut pid).unwrap();
        Some(Self {
            server,
            program,
            pid: pid.trim().to_owned(),
        })
    }
}

impl Drop for Hang {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}
