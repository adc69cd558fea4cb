//! Finds the file system, the block device and the disks of a path. Partitions, device mapper and
//! md are resolved to whole disks. File systems in memory and network file systems have no disks.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use loadprint_cpulist::mountinfo;
use loadprint_cpulist::mountinfo::Mount;
use loadprint_probes::Host;
use rustix::fs::major;
use rustix::fs::minor;
use serde_json::Value;
use serde_json::json;

use super::names;

/// The list `storage`: the file systems and disks of data, redo log, binary log and journal. Logs are those in the
/// data directory.
pub fn roles(host: &Host, data_dir: Option<&Path>, journal_dir: Option<&Path>) -> Vec<Value> {
    let mut roles = vec![];
    if let Some(data) = data_dir {
        roles.push(role(host, "data", data));
        // MySQL 8.0.30 and later store the redo log in this directory, which may be a mount point.
        let redo = data.join("#innodb_redo");
        let files = names(data);
        // Logs that are not in the directory of a server may be on other disks, or there is none.
        let is_empty = !files.iter().any(|file| file == "ibdata1");
        let has = |is_it: fn(&str) -> bool| is_empty || files.iter().any(|file| is_it(file));
        if redo.exists() {
            roles.push(role(host, "redo", &redo));
        } else if has(|file| file == "ib_logfile0") {
            roles.push(role(host, "redo", data));
        }
        if has(|file| file.ends_with(".index") && !file.contains("relay")) {
            roles.push(role(host, "binlog", data));
        }
    }
    roles.extend(journal_dir.map(|journal| role(host, "journal", journal)));
    roles
}

/// The root file system and its disks, which the operating system also uses.
pub fn root(host: &Host) -> Value {
    let location = Location::of(host, Path::new("/"));
    let mount = location.as_ref().and_then(|location| location.mount.as_ref());
    json!({
        "filesystem": mount.map(|mount| &mount.filesystem),
        "device": mount.map(|mount| &mount.source),
        "disks": location.as_ref().map(|location| location.disks(host)),
    })
}

/// True if `a` and `b` share a disk, or a file system without disks.
pub fn share_a_disk(host: &Host, a: &Path, b: &Path) -> bool {
    let (Some(a), Some(b)) = (Location::of(host, a), Location::of(host, b)) else {
        return false;
    };
    let disks = a.disks(host);
    if disks.is_empty() {
        a.number == b.number && !a.in_memory()
    } else {
        !disks.is_disjoint(&b.disks(host))
    }
}

fn role(host: &Host, name: &str, path: &Path) -> Value {
    let location = Location::of(host, path);
    let mount = location.as_ref().and_then(|location| location.mount.as_ref());
    json!({
        "role": name,
        "path": path,
        "filesystem": mount.map(|mount| &mount.filesystem),
        "device": mount.map(|mount| &mount.source),
        "options": mount.map(|mount| format!("{},{}", mount.options, mount.super_options)),
        "disks": location.as_ref().map(|location| location.disks(host)),
    })
}

/// The file system of a path.
#[derive(Debug)]
struct Location {
    /// `major:minor` of the file system, or of its device.
    number: String,
    mount: Option<Mount>,
}

impl Location {
    /// `None` if no parent of the path exists.
    fn of(host: &Host, path: &Path) -> Option<Self> {
        // A directory that is created later will be on the file system of its nearest parent.
        let existing: PathBuf = path.ancestors().find_map(|parent| {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            fs::canonicalize(parent).ok()
        })?;
        let device = fs::metadata(&existing).ok()?.dev();
        let mut number = format!("{}:{}", major(device), minor(device));
        let mounts = fs::read(host.proc("self/mountinfo")).unwrap_or_default();
        let mount = mountinfo::parse(&mounts).filter(|mount| existing.starts_with(&mount.point));
        // The last of several mounts on one mount point hides the others.
        let mount = mount.max_by_key(|mount| Path::new(&mount.point).components().count());
        // btrfs and others have file system numbers that are not of a device: use the mount's
        // source.
        if !host.sys(&format!("dev/block/{number}")).exists()
            && let Some(mount) = &mount
            && let Ok(metadata) = fs::metadata(&mount.source)
            && mount.source.starts_with('/')
        {
            number = format!("{}:{}", major(metadata.rdev()), minor(metadata.rdev()));
        }
        Some(Self { number, mount })
    }

    fn in_memory(&self) -> bool {
        let mount = self.mount.as_ref();
        mount.is_some_and(|mount| ["tmpfs", "ramfs"].contains(&&*mount.filesystem))
    }

    fn disks(&self, host: &Host) -> BTreeSet<String> {
        let mut disks = BTreeSet::new();
        if let Ok(device) = fs::canonicalize(host.sys(&format!("dev/block/{}", self.number))) {
            follow(&device, 0, &mut disks);
        }
        disks
            .into_iter()
            .flat_map(|disk| with_counters(host, disk))
            .collect()
    }
}

/// The disks that have the counters of this one: its paths, if it is an NVMe namespace with multipath. The
/// kernel sends its requests to disks such as nvme0c1n2, for nvme0n2, and counts flushes only there.
fn with_counters(host: &Host, disk: String) -> Vec<String> {
    let is_path = |path: &String| {
        let parts = path
            .split_once('c')
            .and_then(|(subsystem, rest)| Some((subsystem, rest.split_once('n')?.1)));
        parts.is_some_and(|(subsystem, namespace)| disk == format!("{subsystem}n{namespace}"))
    };
    let mut paths = names(&host.sys("block"));
    paths.retain(is_path);
    if paths.is_empty() { vec![disk] } else { paths }
}

/// Collects the whole disks of the device at sysfs path `device`.
fn follow(device: &Path, depth: usize, disks: &mut BTreeSet<String>) {
    // The kernel does not allow cycles, but --sys-root may contain one.
    if depth > 16 {
        return;
    }
    let whole = if device.join("partition").exists() {
        device.parent().unwrap_or(device)
    } else {
        device
    };
    let slaves = names(&whole.join("slaves"));
    if slaves.is_empty() {
        disks.extend(
            whole
                .file_name()
                .map(|name| name.to_string_lossy().replace('!', "/")),
        );
    }
    for slave in slaves {
        if let Ok(slave) = fs::canonicalize(whole.join("slaves").join(slave)) {
            follow(&slave, depth + 1, disks);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_namespace_with_multipath_resolves_to_its_paths() {
        let sys = tempfile::tempdir().unwrap();
        for name in [
            "nvme0c0n1",
            "nvme0c1n1",
            "nvme0c0n2",
            "nvme1c0n1",
            "nvme0n1",
            "sdc1n1",
        ] {
            fs::create_dir_all(sys.path().join("block").join(name)).unwrap();
        }
        let host = Host::new("/proc", sys.path());
        assert_eq!(
            with_counters(&host, "nvme0n1".to_owned()),
            ["nvme0c0n1", "nvme0c1n1"]
        );
        assert_eq!(with_counters(&host, "nvme2n1".to_owned()), ["nvme2n1"]);
        assert_eq!(with_counters(&host, "sda".to_owned()), ["sda"]);
    }

    #[test]
    fn logs_that_are_not_in_the_data_directory_have_no_disk() {
        let data = tempfile::tempdir().unwrap();
        let of = |files: &[&str]| {
            files
                .iter()
                .for_each(|file| fs::write(data.path().join(file), "").unwrap());
            let roles = roles(&Host::default(), Some(data.path()), None);
            roles
                .iter()
                .map(|role| role["role"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[]),
            ["data", "redo", "binlog"],
            "a server that is created later"
        );
        assert_eq!(of(&["ibdata1", "host-relay-bin.index"]), ["data"]);
        assert_eq!(of(&["ib_logfile0"]), ["data", "redo"]);
        assert_eq!(of(&["binlog.index"]), ["data", "redo", "binlog"]);
    }

    #[test]
    fn a_logical_volume_on_a_partition_resolves_to_its_disk() {
        let sys = tempfile::tempdir().unwrap();
        let root = sys.path();
        let partition = root.join("devices/pci/nvme0n1/nvme0n1p2");
        let mapper = root.join("devices/virtual/block/dm-0");
        fs::create_dir_all(&partition).unwrap();
        fs::create_dir_all(mapper.join("slaves")).unwrap();
        fs::create_dir_all(root.join("dev/block")).unwrap();
        fs::write(partition.join("partition"), "2\n").unwrap();
        symlink(&partition, mapper.join("slaves/nvme0n1p2")).unwrap();
        symlink(&mapper, root.join("dev/block/252:0")).unwrap();
        let location = Location {
            number: "252:0".to_owned(),
            mount: None,
        };
        let host = Host::new("/proc", root);
        assert_eq!(location.disks(&host), BTreeSet::from(["nvme0n1".to_owned()]));
        let unknown = Location {
            number: "0:45".to_owned(),
            ..location
        };
        assert_eq!(unknown.disks(&host), BTreeSet::new());
    }
}
