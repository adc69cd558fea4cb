//! Finds the watched processes, also after a server restarts.
//!
//! A process that does not exist has no row; that is not an error. Every sample looks for the
//! processes; by name every tenth one, or every one while a role has no process. A process that
//! joins a control group is watched from the next sample.

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
use rustix::process::getuid;

use crate::Host;
use crate::options::Find;
use crate::options::ProcessTarget;

/// Samples between two searches by name: `/proc` has thousands of entries on a busy host.
const WALK_EVERY: u32 = 10;

/// The processes of all roles, looked up at every sample.
#[derive(Debug)]
pub struct Targets {
    host: Host,
    targets: Vec<ProcessTarget>,
    samples: u32,
    named: Vec<(String, u32)>,
    /// Directories of the processes that were named by ID, if only the first process with that ID
    /// is watched.
    directories: Option<HashMap<u32, OwnedFd>>,
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
            directories: None,
        }
    }

    /// Watches only the first process with a given ID, for tables whose rows do not distinguish a
    /// later one.
    #[must_use]
    pub fn with_first_process_only(mut self) -> Self {
        self.directories = Some(HashMap::new());
        self
    }

    /// Role and ID of every process that exists, without duplicates.
    pub fn find(&mut self) -> Vec<(String, u32)> {
        if self.is_walk_due() {
            self.named = self.walk();
        }
        self.samples = self.samples.wrapping_add(1);
        let mut processes = self.named.clone();
        for target in &self.targets {
            let found = match &target.find {
                Find::Pid(pid) => {
                    let directories = self.directories.as_mut();
                    let exists = directories.is_none_or(|known| exists(&self.host, known, *pid));
                    exists.then_some(*pid).into_iter().collect()
                }
                Find::Cgroup(path) => members(&self.host.sys("fs/cgroup").join(path)),
                Find::PidFile(path) => {
                    let text = read_pid_file(path).unwrap_or_default();
                    text.trim().parse().into_iter().collect()
                }
                Find::Name(..) => vec![],
            };
            processes.extend(found.into_iter().map(|pid| (target.role.clone(), pid)));
        }
        self.add_descendants(&mut processes);
        processes.sort();
        processes.dedup();
        processes
    }

    /// Whether the next sample looks for processes by name.
    fn is_walk_due(&self) -> bool {
        let names = || {
            let by_name = |target: &&ProcessTarget| matches!(target.find, Find::Name(..));
            self.targets.iter().filter(by_name)
        };
        let is_missing = |target: &ProcessTarget| self.named.iter().all(|(role, _)| *role != target.role);
        let has_exited = |(_, pid): &(String, u32)| !self.host.proc(&format!("{pid}/stat")).exists();
        let is_due = names().next().is_some() && self.samples.is_multiple_of(WALK_EVERY);
        is_due || names().any(is_missing) || self.named.iter().any(has_exited)
    }

    /// Adds all descendants of the processes of each role with `tree`.
    fn add_descendants(&self, processes: &mut Vec<(String, u32)>) {
        let mut next = 0;
        while let Some((role, pid)) = processes.get(next).cloned() {
            next += 1;
            let is_tree = |target: &ProcessTarget| target.tree && target.role == role;
            if self.targets.iter().any(is_tree) {
                let children = self.children(pid).into_iter();
                let children = children.map(|child| (role.clone(), child));
                let new: Vec<_> = children.filter(|child| !processes.contains(child)).collect();
                processes.extend(new);
            }
        }
    }

    /// The children of every thread of a process (`/proc/PID/task/TID/children`, proc_pid_task(5));
    /// none if it has exited.
    fn children(&self, pid: u32) -> Vec<u32> {
        let threads = fs::read_dir(self.host.proc(&format!("{pid}/task")));
        let threads = threads.into_iter().flatten().flatten();
        threads
            .flat_map(|thread| numbers(&thread.path().join("children")))
            .collect()
    }

    fn walk(&self) -> Vec<(String, u32)> {
        let entries = fs::read_dir(self.host.proc(""));
        let mut processes = vec![];
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            for target in &self.targets {
                if let Find::Name(wanted, user) = &target.find
                    && same_name(wanted, comm.trim_end())
                    && real_user(&entry.path()).is_some_and(|real| is_watched(real, *user))
                {
                    processes.push((target.role.clone(), pid));
                }
            }
        }
        processes
    }
}

/// The process IDs in a file; none if it does not exist.
fn numbers(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let words = text.split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

/// True while the first process with this ID exists. Its directory in `/proc` is open: after the
/// process has exited, no file can be reached through it, even if another process has the ID.
fn exists(host: &Host, directories: &mut HashMap<u32, OwnedFd>, pid: u32) -> bool {
    if !directories.contains_key(&pid) {
        let directory = open(
            host.proc(&pid.to_string()),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        directories.extend(directory.map(|directory| (pid, directory)));
    }
    directories
        .get(&pid)
        .is_some_and(|directory| statat(directory, "stat", AtFlags::empty()).is_ok())
}

/// The first bytes of a pid file. Its directory can belong to the watched account, which must not
/// be able to block the recorder with a FIFO or to fill its memory.
fn read_pid_file(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(open(path, flags, Mode::empty())?);
    io::read_to_string(file.take(32))
}

/// The processes of a control group and of the groups below it (cgroups(7)); none if the group does
/// not exist.
fn members(group: &Path) -> Vec<u32> {
    let mut processes = numbers(&group.join("cgroup.procs"));
    // A process in another pid namespace.
    processes.retain(|pid| *pid > 0);
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        processes.extend(members(&entry.path()));
    }
    processes
}

/// Whether a process found by name belongs to the wanted user; without one, to root, the caller or a
/// system account (login.defs(5), `UID_MIN`).
fn is_watched(real: u32, wanted: Option<u32>) -> bool {
    const FIRST_USER: u32 = 1000;
    match wanted {
        Some(user) => real == user,
        None => real < FIRST_USER || real == getuid().as_raw(),
    }
}

/// The real user ID of a process (proc_pid_status(5)): a user can start a set-user-ID program under
/// another name.
fn real_user(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().next()?.parse().ok()
}

/// Compares names; the kernel stores fifteen bytes of a name (proc_pid_comm(5)).
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
        fs::write(dir.join("status"), format!("Name:\t{comm}\nUid:\t0\t0\t0\t0\n")).unwrap();
    }

    #[test]
    fn name_does_not_include_processes_of_other_users() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, users) in [
            (7, "106 106 106 106"),
            (8, "1001 0 0 0"),
            (9, "65534 65534 65534 65534"),
        ] {
            process(proc.path(), pid, "mysqld");
            let status = format!("Name:\tmysqld\nUid:\t{}\n", users.replace(' ', "\t"));
            fs::write(proc.path().join(format!("{pid}/status")), status).unwrap();
        }
        let found = |target: &str| {
            let host = Host::new(proc.path(), "/sys");
            let found = Targets::new(&host, vec![target.parse().unwrap()]).find();
            found.into_iter().map(|(_, pid)| pid).collect::<Vec<_>>()
        };
        assert_eq!(found("server=mysqld"), [7]);
        assert_eq!(found("server=mysqld@1001"), [8]);
        assert_eq!(found("server=mysqld@65534"), [9]);
    }

    #[test]
    fn tree_includes_all_current_descendants() {
        use std::process::Command;
        use std::process::Stdio;

        // A shell that runs a shell that runs cat, which exits at the end of its input.
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'cat; :'; :"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let single = vec![format!("load={}", shell.id()).parse().unwrap()];
        let tree = vec![format!("load=tree:{}", shell.id()).parse().unwrap()];
        let host = Host::new("/proc", "/sys");
        let mut tree = Targets::new(&host, tree);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
        while tree.find().len() < 3 {
            assert!(std::time::Instant::now() < deadline, "{:?}", tree.find());
            std::thread::yield_now();
        }
        assert_eq!(Targets::new(&host, single).find().len(), 1);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(tree.find(), [("load".to_owned(), shell.id())]);
    }

    #[test]
    fn first_process_with_an_id_can_be_the_only_one() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 7, "mysqld");
        let host = Host::new(proc.path(), "/sys");
        let mut targets = Targets::new(&host, vec!["server=7".parse().unwrap()]).with_first_process_only();
        assert_eq!(targets.find(), [("server".to_owned(), 7)]);
        fs::remove_dir_all(proc.path().join("7")).unwrap();
        assert_eq!(targets.find(), []);
        process(proc.path(), 7, "another");
        assert_eq!(targets.find(), []);
    }

    #[test]
    fn control_group_includes_the_groups_below_it() {
        let sys = tempfile::tempdir().unwrap();
        let group = sys.path().join("fs/cgroup/mysql");
        let mut targets = Targets::new(
            &Host::new("/nonexistent", sys.path()),
            vec!["server=cgroup:mysql".parse().unwrap()],
        );
        assert_eq!(targets.find(), [], "it can be created later");
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
        let targets = vec![
            format!("server=@{}", pid_file.display()).parse().unwrap(),
            "load=a-rather-long-name".parse().unwrap(),
        ];
        let mut targets = Targets::new(&Host::new(proc.path(), "/sys"), targets);
        assert_eq!(targets.find(), []);
        process(proc.path(), 7, "a-rather-long-n");
        assert_eq!(targets.find(), [("load".to_owned(), 7)], "at the next sample");
        fs::write(&pid_file, "42\n").unwrap();
        assert_eq!(
            targets.find(),
            [("load".to_owned(), 7), ("server".to_owned(), 42)]
        );

        fs::rename(proc.path().join("7"), proc.path().join("8")).unwrap();
        assert_eq!(targets.find()[0], ("load".to_owned(), 8));

        // The account of the server can replace the file by anything.
        fs::remove_file(&pid_file).unwrap();
        mknodat(CWD, &pid_file, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(targets.find(), [("load".to_owned(), 8)]);
        fs::remove_file(&pid_file).unwrap();
        symlink("/dev/zero", &pid_file).unwrap();
        assert_eq!(targets.find(), [("load".to_owned(), 8)]);
    }
}
