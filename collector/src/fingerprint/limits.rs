//! What the control groups around this process allow it: CPU time and memory. A container's limits, which `/proc` does not show.

use std::path::Path;
use std::path::PathBuf;

use loadprint_probes::Host;
use serde_json::Value;
use serde_json::json;

use super::line;
use super::number;

/// The tightest limits of the groups from this process's up to the root, as the kernel prints them; null where it has none to
/// tell, and a limit that no group sets is null.
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
    let tightest = cpu
        .iter()
        .min_by(|(a, of_a), (b, of_b)| (a * of_b).cmp(&(b * of_a)));
    json!({
        "cpu_quota_us": tightest.map(|(quota, _)| quota),
        "cpu_period_us": tightest.map(|(_, period)| period),
        "memory_bytes": memory.iter().min(),
    })
}

/// Version 1 prints the largest multiple of a page for no limit.
const UNLIMITED: i64 = 1 << 62;

/// The folders of a controller's groups, innermost first: of version 2, and of version 1 where the controller is there.
fn folders(host: &Host, groups: &str, controller: &str) -> Vec<PathBuf> {
    let parts = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    };
    let mut found = vec![];
    for (controllers, path) in groups.lines().filter_map(parts) {
        let root = if controllers.is_empty() {
            host.sys("fs/cgroup")
        } else if controllers.split(',').any(|name| name == controller) {
            host.sys(&format!("fs/cgroup/{controllers}"))
        } else {
            continue;
        };
        let own = Path::new(path.trim_start_matches('/'));
        // An absolute path would replace the root.
        found.extend(own.ancestors().map(|group| root.join(group)));
    }
    found
}

/// CPU time (µs) that a group has in each period (µs): `cpu.max` of version 2, `cpu.cfs_*` of version 1.
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

    /// A host whose process is in `groups`, and these files below `/sys/fs/cgroup`.
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
    fn the_tightest_group_around_the_process_counts() {
        let files = [
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.max", "400000 200000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "1073741824\n"),
            ("c/cpu.max", "10000 100000\n"),
        ];
        let found = limits("0::/a/b\n", &files);
        assert_eq!(
            found,
            json!({"cpu_quota_us": 150_000, "cpu_period_us": 100_000, "memory_bytes": 1_073_741_824})
        );
    }

    #[test]
    fn version_1_has_a_tree_for_each_controller() {
        let files = [
            ("cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n"),
            ("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let found = limits("3:memory:/y\n2:cpu,cpuacct:/x\n", &files);
        assert_eq!(
            found,
            json!({"cpu_quota_us": 50_000, "cpu_period_us": 100_000, "memory_bytes": null})
        );
    }

    #[test]
    fn without_control_groups_nothing_is_known() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(read(&Host::new(empty.path(), empty.path())), Value::Null);
    }
}
