//! Reads CPU throttling and memory of the control groups of the watched processes and of their
//! parent groups.
//!
//! A container's CPU limit is a quota: only here does throttled time differ from idle time. A read
//! of `cpu.stat` of version 2 makes the kernel add up all CPUs of all groups below, so a separate
//! thread reads it.

use std::path::Path;
use std::path::PathBuf;

use super::entities::Entities;
use super::fields::values;
use super::mounts::Mount;
use super::mounts::hierarchy;
use super::mounts::parse_memberships;
use super::mounts::parse_mounts;
use super::targets::Targets;
use loadprint_recording::rows::Odd;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "cgroup",
    "CPU throttling and memory of the control groups of the watched processes",
    &SCHEMA,
    open,
)
.read_at(Cadence::Slow);

static ENTITY: &[Text] = &[text("role"), text("path")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(One) "nr_periods", "periods in which a task was runnable", "cpu.stat nr_periods";
    counter(One) "nr_throttled", "periods that used up the quota", "cpu.stat nr_throttled", lower;
    counter(Microsecond) "throttled_us",
        "time throttled while runnable; version 2", "cpu.stat throttled_usec", lower;
    counter(Nanosecond) "throttled_ns",
        "time throttled while runnable; version 1", "cpu.stat throttled_time", lower;
    gauge(Microsecond) "quota_us",
        "CPU time allowed in a period; null without a limit", "cpu.max, cpu.cfs_quota_us";
    gauge(Microsecond) "period_us", "length of a period", "cpu.max, cpu.cfs_period_us";
    gauge(Byte) "memory_bytes", "memory used, page cache included", "memory.current, memory.usage_in_bytes";
};

/// The keys of `cpu.stat` (Documentation/admin-guide/cgroup-v2.rst; version 1:
/// Documentation/scheduler/sched-bwc.rst), in the order of their columns.
///
/// ```text
/// nr_periods 100
/// nr_throttled 7
/// throttled_usec 190233
/// ```
pub const CPU_STAT: [&str; 4] = ["nr_periods", "nr_throttled", "throttled_usec", "throttled_time"];

#[derive(Debug)]
struct Cgroups {
    host: Host,
    mounts: Vec<Mount>,
    targets: Targets,
    /// The list of groups of each process.
    members: Entities<(String, u32), Source>,
    /// By role and path.
    groups: Entities<(String, String), Group>,
}

/// The open files of one group; `None` for a file that the kernel or hierarchy does not have.
#[derive(Debug, Default)]
struct Group {
    cpu_stat: Option<Source>,
    /// Version 2 has quota and period in one file, version 1 in two files.
    cpu_max: Option<Source>,
    quota: Option<Source>,
    period: Option<Source>,
    memory: Option<Source>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let unavailable = |error: ProbeError| NotRunning::Unavailable(format!("{error}; {MOUNT_PROC}"));
    let mut mountinfo = Source::open(host.proc("self/mountinfo")).map_err(unavailable)?;
    let mounts = parse_mounts(mountinfo.read().map_err(unavailable)?);
    if mounts.is_empty() {
        return Err(NotRunning::Unavailable(format!(
            "{}: no hierarchy of control groups; mount -t cgroup2 none /sys/fs/cgroup",
            host.proc("self/mountinfo").display()
        )));
    }
    let mut cgroups = Cgroups {
        host: host.clone(),
        mounts,
        targets: Targets::new(host, options.with_recorder()),
        members: Entities::default(),
        groups: Entities::default(),
    };
    Ok(Background::spawn("cgroup", move |rows| cgroups.sample(rows)))
}

impl Cgroups {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self {
            host,
            mounts,
            targets,
            members,
            groups,
        } = self;
        for process in targets.find() {
            let list = |(_, pid): &(String, u32)| Source::sized(host.proc(&format!("{pid}/cgroup")), 512);
            members.find(process, list)?;
        }
        // A process may have moved to other groups.
        members.sample(rows, COLUMNS.len(), |(role, _), list, _| {
            let memberships = parse_memberships(list.read()?);
            for controller in ["cpu", "memory"] {
                let Some((mount, path)) = hierarchy(controller, mounts, &memberships) else {
                    continue;
                };
                for path in with_parents(path) {
                    let Some(dir) = directory(host, mount, path) else {
                        break;
                    };
                    let key = (role.clone(), path.to_owned());
                    if let Some(group) = groups.find(key, |_| Ok(Group::default()))? {
                        group.open(controller, &dir);
                    }
                }
            }
            Ok(())
        })?;
        groups.sample(rows, COLUMNS.len(), |(role, path), group, rows| {
            group.sample([role.as_bytes(), path.as_bytes()], rows)
        })
    }
}

/// A group and its parent groups up to the root.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        let end = path.rfind('/').filter(|_| path.len() > 1)?;
        Some(if end == 0 { "/" } else { &path[..end] })
    })
}

/// The directory of a group; `None` if it is outside of the mounted hierarchy.
fn directory(host: &Host, mount: &Mount, path: &str) -> Option<PathBuf> {
    let inside = if mount.root == "/" {
        path
    } else {
        path.strip_prefix(&mount.root)?
    };
    if !(inside.is_empty() || inside.starts_with('/')) || inside.split('/').any(|part| part == "..") {
        return None;
    }
    let point = match mount.point.strip_prefix("/sys/") {
        Some(under) => host.sys(under),
        None => PathBuf::from(&mount.point),
    };
    Some(point.join(inside.trim_start_matches('/')))
}

impl Group {
    /// Opens the files of one controller that are not open yet.
    fn open(&mut self, controller: &str, dir: &Path) {
        let file = |name: &str| Source::sized(dir.join(name), 512).ok();
        match controller {
            "cpu" if self.cpu_stat.is_none() => {
                self.cpu_stat = file("cpu.stat");
                self.cpu_max = file("cpu.max");
                self.quota = file("cpu.cfs_quota_us");
                self.period = file("cpu.cfs_period_us");
            }
            "memory" if self.memory.is_none() => {
                self.memory = file("memory.current").or_else(|| file("memory.usage_in_bytes"));
            }
            _ => {}
        }
    }

    fn sample(&mut self, entity: [&[u8]; 2], rows: &mut Rows) -> Result<(), ProbeError> {
        let odd = rows.odd_mut();
        let cpu = read(&mut self.cpu_stat, |text| values(text, CPU_STAT, odd))?.unwrap_or_default();
        let (quota, period) = match read(&mut self.cpu_max, |text| parse_cpu_max(text, odd))? {
            Some(limit) => limit,
            None => (number(&mut self.quota, odd)?, number(&mut self.period, odd)?),
        };
        let memory = number(&mut self.memory, odd)?;
        rows.row(&entity);
        let cells = cpu.into_iter().chain([quota, period, memory]);
        cells.for_each(|cell| rows.uint_or_null(cell));
        Ok(())
    }
}

/// The number in a file; `None` if it is -1, for no limit, and where [`read`] returns `None`.
fn number(file: &mut Option<Source>, odd: &mut Odd) -> Result<Option<u64>, ProbeError> {
    let number = read(file, |text| {
        let mut cursor = Cursor::new(text);
        let number = cursor.int("value");
        odd.add(&cursor.into_odd());
        number
    })?;
    Ok(number.flatten().and_then(|number| number.try_into().ok()))
}

/// Reads one file of a group; `None` if it does not exist, or the group was removed (ENODEV): then it is closed, so
/// that a new group of the same name is opened, as after a restart of a service.
fn read<T>(file: &mut Option<Source>, parse: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, ProbeError> {
    match file.as_mut().map(|file| file.read().map(parse)).transpose() {
        Err(ProbeError::Read { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => {
            *file = None;
            Ok(None)
        }
        result => result,
    }
}

/// Parses `cpu.max`: quota (`max` means no limit) and period.
///
/// ```text
/// 50000 100000
/// ```
///
#[must_use]
pub fn parse_cpu_max(file: &[u8], odd: &mut Odd) -> (Option<u64>, Option<u64>) {
    let mut cursor = Cursor::new(file);
    let quota = match cursor.word() {
        None | Some(b"max") => None,
        Some(word) => cursor.number("quota", word),
    };
    let limit = (quota, cursor.uint("period"));
    odd.add(&cursor.into_odd());
    limit
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::Duration;
    use std::time::Instant;

    use loadprint_recording::rows::Value;

    use super::*;

    #[test]
    fn group_has_its_parents_up_to_the_root() {
        assert_eq!(with_parents("/a/b").collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
        assert_eq!(with_parents("/").collect::<Vec<_>>(), ["/"]);
    }

    #[test]
    fn groups_of_a_container_are_below_its_mount_point() {
        let mount = |root: &str| Mount {
            root: root.to_owned(),
            point: "/sys/fs/cgroup".to_owned(),
            controllers: None,
        };
        let host = Host::new("/proc", "/fake");
        let dir = |root, path| directory(&host, &mount(root), path).map(|dir| dir.display().to_string());
        assert_eq!(dir("/", "/a").unwrap(), "/fake/fs/cgroup/a");
        assert_eq!(dir("/docker/x", "/docker/x/db").unwrap(), "/fake/fs/cgroup/db");
        assert_eq!(dir("/docker/x", "/docker/xy"), None);
        assert_eq!(dir("/", "/../other"), None);
    }

    /// A real group of this host, of either version, with a tenth of a CPU for a process that would
    /// use one.
    #[test]
    fn throttling_by_a_quota_is_measured() {
        let host = Host::default();
        let mounts = parse_mounts(&fs::read("/proc/self/mountinfo").unwrap());
        let memberships = parse_memberships(&fs::read("/proc/self/cgroup").unwrap());
        let (mount, own) = hierarchy("cpu", &mounts, &memberships).unwrap();
        let top = directory(&host, mount, &mount.root).unwrap();
        let name = format!("loadprint-test-{}", std::process::id());
        let group = top.join(&name);
        if mount.controllers.is_none() {
            fs::write(top.join("cgroup.subtree_control"), "+cpu").unwrap();
        }
        let create = || {
            fs::create_dir(&group).unwrap();
            match mount.controllers {
                None => fs::write(group.join("cpu.max"), "10000 100000").unwrap(),
                Some(_) => {
                    fs::write(group.join("cpu.cfs_period_us"), "100000").unwrap();
                    fs::write(group.join("cpu.cfs_quota_us"), "10000").unwrap();
                }
            }
        };
        create();
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = busy.id().to_string();
        let enter = |dir: &Path| fs::write(dir.join("cgroup.procs"), &pid).unwrap();
        enter(&group);
        let options = Options {
            processes: vec![format!("load={}", busy.id()).parse().unwrap()],
            ..Options::default()
        };
        let mut probe = open(&host, &options).unwrap();
        let mut rows = Rows::default();
        let deadline = Instant::now() + Duration::from_secs(300);
        let path = format!("{}/{name}", mount.root.trim_end_matches('/'));
        let mut throttled = || {
            loop {
                rows.clear();
                probe.begin();
                probe.wait(Duration::from_secs(60));
                probe.sample(&mut rows).unwrap();
                let ours =
                    (0..rows.len()).find(|row| rows.entity(*row).eq([b"load".as_slice(), path.as_bytes()]));
                let cell = |column| match rows.value(ours.unwrap(), column, COLUMNS.len()) {
                    Value::Bits(bits) => Some(bits),
                    _ => None,
                };
                if cell(1) >= Some(3) {
                    return [cell(2), cell(3), cell(4), cell(5)];
                }
                assert!(Instant::now() < deadline, "never throttled");
                std::thread::yield_now();
            }
        };
        let cells = throttled();
        // As a service that restarts: the group is another one of the same name.
        enter(&directory(&host, mount, own).unwrap());
        fs::remove_dir(&group).unwrap();
        create();
        enter(&group);
        assert_eq!(throttled()[2..], cells[2..]);
        busy.kill().unwrap();
        busy.wait().unwrap();
        while let Err(error) = fs::remove_dir(&group) {
            assert!(Instant::now() < deadline, "{error}");
        }
        assert_eq!(cells[2..], [Some(10_000), Some(100_000)]);
        let version_2 = mount.controllers.is_none();
        assert_eq!([cells[0].is_some(), cells[1].is_some()], [version_2, !version_2]);
        // The process has exited and the group is removed: no row and no error.
        rows.clear();
        probe.begin();
        probe.wait(Duration::from_secs(60));
        probe.sample(&mut rows).unwrap();
        assert!((0..rows.len()).all(|row| rows.entity(row).next() == Some(b"recorder")));
    }

    #[test]
    fn limits_of_both_versions_are_parsed() {
        let mut odd = Odd::default();
        let mut limit = |text| parse_cpu_max(text, &mut odd);
        assert_eq!(limit(b"max 100000\n"), (None, Some(100_000)));
        assert_eq!(limit(b"50000 100000\n"), (Some(50_000), Some(100_000)));
        assert_eq!(limit(b""), (None, None));
        assert!(odd.is_empty());
        assert_eq!(parse_cpu_max(b"-5 much\n", &mut odd), (None, None));
        assert_eq!(odd.cells, 2);
    }
}
