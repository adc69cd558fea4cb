//! Finds the processes that are to be watched, and finds them again when a server restarts.
//!
//! A process that is not there has no row; that is not a failure. It is looked for at every sample, by name at every tenth: a
//! process that joins a control group is watched from the next sample on.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::open;
use rustix::fs::statat;

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
    /// Directories of processes that were named by number, where only the first one of a number is meant.
    held: Option<HashMap<u32, OwnedFd>>,
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
            held: None,
        }
    }

    /// The same, but a number means only the process that had it first: for tables whose rows do not tell a later one apart.
    #[must_use]
    pub fn with_first_role_only(mut self) -> Self {
        self.held = Some(HashMap::new());
        self
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
                Find::Pid(pid) => {
                    let held = self.held.as_mut();
                    let there = held.is_none_or(|held| is_there(&self.host, held, *pid));
                    found.extend(there.then(|| (target.role.clone(), *pid)));
                }
                Find::Cgroup(path) => {
                    let group = self.host.sys("fs/cgroup").join(path);
                    found.extend(members(&group).into_iter().map(|pid| (target.role.clone(), pid)));
                }
                Find::PidFile(path) => {
                    let text = read_pid_file(path).unwrap_or_default();
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

/// True as long as the process that was seen first under the number lives: through a directory that is held open nothing can be
/// reached once its process is gone, whoever has the number then.
fn is_there(host: &Host, held: &mut HashMap<u32, OwnedFd>, pid: u32) -> bool {
    if !held.contains_key(&pid) {
        let directory = open(
            host.proc(&pid.to_string()),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        held.extend(directory.map(|directory| (pid, directory)));
    }
    held.get(&pid)
        .is_some_and(|directory| statat(directory, "stat", AtFlags::empty()).is_ok())
}

/// The first bytes of a pid file. Its directory may be the watched account's, which is not to keep the recorder waiting at a FIFO or
/// to fill its memory.
fn read_pid_file(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(open(path, flags, Mode::empty())?);
    io::read_to_string(file.take(32))
}

/// The processes of a control group and of the groups in it (cgroups(7)); none where there is no such group now.
fn members(group: &Path) -> Vec<u32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process of another pid namespace.
    let mut found: Vec<u32> = list
        .lines()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| *pid > 0)
        .collect();
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found.extend(members(&entry.path()));
    }
    found
}

/// The kernel keeps fifteen bytes of a name (proc_pid_comm(5)).
fn same_name(wanted: &str, comm: &str) -> bool {
    let kept = wanted.as_bytes();
    &kept[..kept.len().min(15)] == comm.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;
    use rustix::fs::FileType;
    use rustix::fs::mknodat;

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
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
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
    fn a_number_may_mean_only_the_process_that_had_it_first() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 7, "mysqld");
        let host = Host::new(proc.path(), "/sys");
        let mut targets = Targets::new(&host, vec!["server=7".parse().unwrap()]).with_first_role_only();
        assert_eq!(targets.find(), [("server".to_owned(), 7)]);
        fs::remove_dir_all(proc.path().join("7")).unwrap();
        assert_eq!(targets.find(), []);
        process(proc.path(), 7, "another");
        assert_eq!(targets.find(), []);
    }

    #[test]
    fn a_group_holds_the_groups_below_it() {
        let sys = tempfile::tempdir().unwrap();
        let group = sys.path().join("fs/cgroup/mysql");
        let mut targets = Targets::new(
            &Host::new("/nonexistent", sys.path()),
            vec!["server=cgroup:mysql".parse().unwrap()],
        );
        assert_eq!(targets.find(), [], "it may come later");
        fs::create_dir_all(group.join("io/more")).unwrap();
        fs::write(group.join("cgroup.procs"), "12\n0\n").unwrap();
        fs::write(group.join("io/more/cgroup.procs"), "7\n").unwrap();
        let server = |pid| ("server".to_owned(), pid);
        assert_eq!(targets.find(), [server(7), server(12)]);
        fs::write(group.join("cgroup.procs"), "13\n").unwrap();
        assert_eq!(targets.find(), [server(7), server(13)]);
        let mut other = Targets::new(
            &Host::default(),
            vec![format!("server=cgroup:{}", group.display()).parse().unwrap()],
        );
        assert_eq!(other.find().len(), 2, "by its directory");
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

        // The account of the server may make anything of its file.
        fs::remove_file(&pid_file).unwrap();
        mknodat(CWD, &pid_file, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(targets.find(), [("load".to_owned(), 8)]);
        fs::remove_file(&pid_file).unwrap();
        symlink("/dev/zero", &pid_file).unwrap();
        assert_eq!(targets.find(), [("load".to_owned(), 8)]);
    }
}
