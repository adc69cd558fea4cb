//! Finds the processes that are to be watched, and finds them again when a server restarts.
//!
//! A process that is not there has no row; that is not a failure. It is looked for at every sample, by name at every tenth.

use std::fs;

use crate::Host;
use crate::options::Find;
use crate::options::ProcessTarget;

/// `/proc` has thousands of entries on a busy host; walking it is not for every sample.
const WALK_EVERY: u32 = 10;

/// The processes of all roles, looked up anew at every sample.
#[derive(Debug)]
pub struct Targets {
    host: Host,
    targets: Vec<ProcessTarget>,
    samples: u32,
    named: Vec<(String, u32)>,
}

impl Targets {
    /// The processes of `targets` on `host`.
    #[must_use]
    pub fn new(host: &Host, targets: Vec<ProcessTarget>) -> Self {
        Self {
            host: host.clone(),
            targets,
            samples: 0,
            named: vec![],
        }
    }

    /// Role and number of every process that is there, each once.
    pub fn find(&mut self) -> Vec<(String, u32)> {
        let names = || {
            self.targets
                .iter()
                .filter(|target| matches!(target.find, Find::Name(_)))
        };
        let gone = self
            .named
            .iter()
            .any(|(_, pid)| !self.host.proc(&format!("{pid}/stat")).exists());
        if names().next().is_some() && (gone || self.samples.is_multiple_of(WALK_EVERY)) {
            self.named = self.walk();
        }
        self.samples = self.samples.wrapping_add(1);
        let mut found = vec![];
        for target in &self.targets {
            match &target.find {
                Find::Pid(pid) => found.push((target.role.clone(), *pid)),
                Find::PidFile(path) => {
                    let text = fs::read_to_string(path).unwrap_or_default();
                    found.extend(text.trim().parse().map(|pid| (target.role.clone(), pid)));
                }
                Find::Name(_) => {}
            }
        }
        found.extend(self.named.iter().cloned());
        self.add_descendants(&mut found);
        found.sort();
        found.dedup();
        found
    }

    /// Adds the children, and theirs, of the processes of every role that is asked for as a tree.
    fn add_descendants(&self, found: &mut Vec<(String, u32)>) {
        let mut next = 0;
        while let Some((role, pid)) = found.get(next).cloned() {
            next += 1;
            if self
                .targets
                .iter()
                .any(|target| target.tree && target.role == role)
            {
                let children = self.children(pid).into_iter();
                let new: Vec<_> = children
                    .map(|child| (role.clone(), child))
                    .filter(|child| !found.contains(child))
                    .collect();
                found.extend(new);
            }
        }
    }

    /// The children of every thread of a process (`/proc/PID/task/TID/children`, proc_pid_task(5)); none when it is gone.
    fn children(&self, pid: u32) -> Vec<u32> {
        let Ok(threads) = fs::read_dir(self.host.proc(&format!("{pid}/task"))) else {
            return vec![];
        };
        let lists = threads
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        lists
            .flat_map(|list| {
                list.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse().ok())
                    .collect::<Vec<u32>>()
            })
            .collect()
    }

    fn walk(&self) -> Vec<(String, u32)> {
        let Ok(entries) = fs::read_dir(self.host.proc("")) else {
            return vec![];
        };
        let mut found = vec![];
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            for target in &self.targets {
                if matches!(&target.find, Find::Name(wanted) if same_name(wanted, comm.trim_end())) {
                    found.push((target.role.clone(), pid));
                }
            }
        }
        found
    }
}

/// The kernel keeps fifteen bytes of a name (proc_pid_comm(5)).
fn same_name(wanted: &str, comm: &str) -> bool {
    let kept = wanted.as_bytes();
    &kept[..kept.len().min(15)] == comm.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn process(proc: &Path, pid: u32, comm: &str) {
        let dir = proc.join(pid.to_string());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("comm"), format!("{comm}\n")).unwrap();
        fs::write(dir.join("stat"), "").unwrap();
    }

    #[test]
    fn a_tree_holds_the_children_of_children_that_are_there_now() {
        use std::process::Command;
        use std::process::Stdio;

        // A shell that runs a shell that runs cat, which lives until its input ends.
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'cat; :'; :"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let alone = vec![format!("load={}", shell.id()).parse().unwrap()];
        let tree = vec![format!("load=tree:{}", shell.id()).parse().unwrap()];
        let host = Host::new("/proc", "/sys");
        let mut tree = Targets::new(&host, tree);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tree.find().len() < 3 {
            assert!(std::time::Instant::now() < deadline, "{:?}", tree.find());
            std::thread::yield_now();
        }
        assert_eq!(Targets::new(&host, alone).find().len(), 1);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(tree.find(), [("load".to_owned(), shell.id())]);
    }

    #[test]
    fn follows_a_pid_file_and_a_name() {
        let proc = tempfile::tempdir().unwrap();
        let pid_file = proc.path().join("mysqld.pid");
        process(proc.path(), 7, "a-rather-long-n");
        let targets = vec![
            format!("server=@{}", pid_file.display()).parse().unwrap(),
            "load=a-rather-long-name".parse().unwrap(),
        ];
        let mut targets = Targets::new(&Host::new(proc.path(), "/sys"), targets);
        assert_eq!(targets.find(), [("load".to_owned(), 7)]);
        fs::write(&pid_file, "42\n").unwrap();
        assert_eq!(
            targets.find(),
            [("load".to_owned(), 7), ("server".to_owned(), 42)]
        );

        fs::rename(proc.path().join("7"), proc.path().join("8")).unwrap();
        assert_eq!(targets.find()[0], ("load".to_owned(), 8));
    }
}
