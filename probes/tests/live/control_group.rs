//! A control group of either version, for one child.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::readings::until;

/// Files of a group and their contents.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// A group without children, removed when the test ends: its processes have to end before.
pub struct ControlGroup(pub PathBuf);

impl ControlGroup {
    /// A group with settings for the version in which this controller is mounted.
    pub fn new(controller: &str, version_1: Settings<'_>, version_2: Settings<'_>) -> Self {
        let (group, settings) = if let Some(root) = mount("cgroup", controller) {
            (Self::below(root), version_1)
        } else {
            let root = mount("cgroup2", "").unwrap();
            fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).unwrap();
            (Self::below(root), version_2)
        };
        settings.iter().for_each(|(file, value)| group.write(file, value));
        group
    }

    /// A group of version 2 without controllers, which can freeze its processes.
    pub fn version_2() -> Self {
        Self::below(mount("cgroup2", "").unwrap())
    }

    fn below(root: PathBuf) -> Self {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("loadprint-test-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }

    pub fn add(&self, pid: i32) {
        self.write("cgroup.procs", &pid.to_string());
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

/// Where file systems of this type are mounted, with an option if one is given.
fn mount(kind: &str, option: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = mounts.find(|words| {
        words[2] == kind && (option.is_empty() || words[3].split(',').any(|word| word == option))
    });
    found.map(|words| PathBuf::from(words[1]))
}
