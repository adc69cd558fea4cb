//! Reads the limits of this process's control groups on CPU time and memory: a container's limits,
//! which `/proc` does not show.

use std::path::Path;
use std::path::PathBuf;

use loadprint_probes::Host;
use loadprint_probes::procfs::mounts::parse_memberships;
use serde_json::Value;
use serde_json::json;

use super::line;
use super::number;

/// The strictest limits of the groups from this process's up to the root, as the kernel prints
/// them. Null without control groups; a limit that no group sets is null.
pub fn read(host: &Host) -> Value {
    let Some(groups) = line(&host.proc("self/cgroup")) else {
        return Value::Null;
    };
    let cpu: Vec<_> = folders(host, &groups, "cpu")
        .iter()
        .filter_map(|folder| quota(folder))
        .collect();
    let memory: Vec<_> = folders(host, &groups, "memory")
        .iter()
        .filter_map(|folder| {
            number(&folder.join("memory.max")).or_else(|| number(&folder.join("memory.limit_in_bytes")))
        })
        .filter(|limit| *limit < UNLIMITED)
        .collect();
    let strictest = cpu
        .iter()
        .min_by(|(a, of_a), (b, of_b)| (a * of_b).cmp(&(b * of_a)));
    json!({
        "cpu_quota_us": strictest.map(|(quota, _)| quota),
        "cpu_period_us": strictest.map(|(_, period)| period),
        "memory_bytes": memory.iter().min(),
    })
}

/// cgroup v1 prints the largest multiple of a page for no limit.
const UNLIMITED: i64 = 1 << 62;

/// The directories of a controller's groups, innermost first, of cgroup v2 and v1.
fn folders(host: &Host, groups: &str, controller: &str) -> Vec<PathBuf> {
    let mut folders = vec![];
    for group in parse_memberships(groups.as_bytes()) {
        let root = if group.controllers.is_empty() {
            host.sys("fs/cgroup")
        } else if group.controllers.iter().any(|name| name == controller) {
            host.sys(&format!("fs/cgroup/{}", group.controllers.join(",")))
        } else {
            continue;
        };
        // Joining an absolute path would replace the root.
        let innermost = Path::new(group.path.trim_start_matches('/'));
        folders.extend(innermost.ancestors().map(|group| root.join(group)));
    }
    folders
}

/// The CPU quota and its period in µs: `cpu.max` of cgroup v2, `cpu.cfs_*` of v1.
fn quota(folder: &Path) -> Option<(i64, i64)> {
    if let Some(text) = line(&folder.join("cpu.max")) {
        let (quota, period) = text.split_once(' ')?;
        return Some((quota.parse().ok()?, period.parse().ok()?));
    }
    let quota = number(&folder.join("cpu.cfs_quota_us")).filter(|quota| *quota > 0)?;
    Some((quota, number(&folder.join("cpu.cfs_period_us"))?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The limits of a process in `groups` with these files in `/sys/fs/cgroup`.
    fn limits(groups: &str, files: &[(&str, &str)]) -> Value {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("self/cgroup"), groups).unwrap();
        for (name, text) in files {
            let path = sys.join("fs/cgroup").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        read(&Host::new(proc, sys))
    }

    #[test]
    fn the_strictest_group_of_the_process_applies() {
        let unified: &[_] = &[
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.max", "400000 200000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "1073741824\n"),
            ("c/cpu.max", "10000 100000\n"),
        ];
        // cgroup v1 has a tree for each controller.
        let version_1: &[_] = &[
            ("cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n"),
            ("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        for (groups, files, quota, memory) in [
            ("0::/a/b\n", unified, 150_000, Some(1_073_741_824)),
            ("3:memory:/y\n2:cpu,cpuacct:/x\n", version_1, 50_000, None),
        ] {
            let expected = json!({"cpu_quota_us": quota, "cpu_period_us": 100_000, "memory_bytes": memory});
            assert_eq!(limits(groups, files), expected, "{groups}");
        }
    }

    #[test]
    fn without_control_groups_the_limits_are_null() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(read(&Host::new(empty.path(), empty.path())), Value::Null);
    }
}
