//! Finds the control groups of a process (`/proc/self/mountinfo`, `/proc/PID/cgroup`).

use loadprint_cpulist::mountinfo;

use super::fields::Cursor;
use super::fields::each_line;

/// A mounted hierarchy of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The group at the mount point; not `/` in a container.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// The controllers of a version 1 hierarchy; `None` for version 2, which has all others.
    pub controllers: Option<Vec<String>>,
}

/// Finds the control group hierarchies in `mountinfo` (proc_pid_mountinfo(5)).
///
/// Lines that are not of this format are left out.
pub fn parse_mounts(file: &[u8]) -> Vec<Mount> {
    let hierarchy = |mount: mountinfo::Mount| {
        let controllers = match mount.filesystem.as_str() {
            "cgroup" => Some(names(mount.super_options.as_bytes())),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount {
            root: mount.root,
            point: mount.point,
            controllers,
        })
    };
    mountinfo::parse(file).filter_map(hierarchy).collect()
}

/// The words of a list.
fn names(list: &[u8]) -> Vec<String> {
    let names = list.split(|byte| *byte == b',').filter(|name| !name.is_empty());
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// One line of `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Controllers of a version 1 hierarchy; empty for version 2.
    pub controllers: Vec<String>,
    /// The group, relative to the root of the reader's cgroup namespace.
    pub path: String,
}

/// Parses `/proc/PID/cgroup` (cgroups(7)).
///
/// ```text
/// 4:memory:/system.slice/mysql.service
/// 0::/system.slice/mysql.service
/// ```
///
/// Lines that are not of this format are left out.
pub fn parse_memberships(file: &[u8]) -> Vec<Membership> {
    let mut memberships = vec![];
    each_line(file, |cursor| memberships.extend(membership(cursor)));
    memberships
}

fn membership(cursor: &mut Cursor<'_>) -> Option<Membership> {
    let number = cursor.until(b':')?;
    let controllers = cursor.until(b':')?;
    let path = String::from_utf8_lossy(cursor.remainder()).into_owned();
    (number.iter().all(u8::is_ascii_digit) && path.starts_with('/')).then(|| Membership {
        controllers: names(controllers),
        path,
    })
}

/// The hierarchy of `controller` for a process, and the group of the process in it.
#[must_use]
pub fn hierarchy<'a>(
    controller: &str,
    mounts: &'a [Mount],
    memberships: &'a [Membership],
) -> Option<(&'a Mount, &'a str)> {
    let has = |names: &[String]| names.iter().any(|name| name == controller);
    let of_first = memberships.iter().find(|member| has(&member.controllers));
    let (member, mount) = match of_first {
        Some(member) => {
            let is_first = |mount: &&Mount| mount.controllers.as_deref().is_some_and(has);
            (member, mounts.iter().find(is_first)?)
        }
        None => (
            memberships.iter().find(|member| member.controllers.is_empty())?,
            mounts.iter().find(|mount| mount.controllers.is_none())?,
        ),
    };
    Some((mount, &member.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_parsed() {
        let mounts = parse_mounts(
            b"31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - tmpfs tmpfs rw,mode=755\n\
              32 31 0:29 /docker/ab /sys/fs/cgroup/cpu\\040acct rw shared:5 master:1 - cgroup cgroup rw,cpu,cpuacct\n\
              41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].point, "/sys/fs/cgroup/cpu acct");
        let memberships = parse_memberships(b"2:cpu,cpuacct:/docker/ab/x\n1:name=systemd:/\n0::/a:b\n");
        let group = |controller| hierarchy(controller, &mounts, &memberships);
        assert_eq!(group("cpu"), Some((&mounts[0], "/docker/ab/x")));
        assert_eq!(group("memory"), Some((&mounts[1], "/a:b")));
        assert!(parse_memberships(b"0:/x\n").is_empty());
    }
}
