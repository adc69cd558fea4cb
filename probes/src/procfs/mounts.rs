//! Finds the control groups of a process (`/proc/self/mountinfo`, `/proc/PID/cgroup`).

use super::fields::each_line;
use crate::host::ParseError;

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
/// ```text
/// 32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
/// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
/// ```
///
/// # Errors
/// When a line does not have the fields of the format.
pub fn parse_mounts(file: &[u8]) -> Result<Vec<Mount>, ParseError> {
    let mut mounts = vec![];
    each_line(file, |cursor| {
        if cursor.remainder().is_empty() {
            return Ok(());
        }
        for _ in 0..3 {
            cursor.need_word("device")?;
        }
        let root = unescape(cursor.need_word("root")?);
        let point = unescape(cursor.need_word("mount point")?);
        // Optional fields come before the dash.
        while cursor.need_word("-")? != b"-" {}
        let kind = cursor.need_word("type")?;
        cursor.need_word("source")?;
        let options = cursor.word().unwrap_or_default();
        if kind == b"cgroup" || kind == b"cgroup2" {
            mounts.push(Mount {
                root,
                point,
                controllers: (kind == b"cgroup").then(|| names(options)),
            });
        }
        Ok(())
    })?;
    Ok(mounts)
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
/// # Errors
/// When a line lacks one of its two colons, or the path is not absolute.
pub fn parse_memberships(file: &[u8]) -> Result<Vec<Membership>, ParseError> {
    let mut memberships = vec![];
    each_line(file, |cursor| {
        if cursor.remainder().is_empty() {
            return Ok(());
        }
        let number = cursor.until(b':');
        let number = number.ok_or_else(|| cursor.error("hierarchy", "no `:`"))?;
        cursor.convert::<u32>("hierarchy", number)?;
        let controllers = cursor.until(b':');
        let controllers = controllers.ok_or_else(|| cursor.error("controllers", "no second `:`"))?;
        let path = String::from_utf8_lossy(cursor.remainder()).into_owned();
        if !path.starts_with('/') {
            return Err(cursor.error("path", "it does not start with `/`"));
        }
        memberships.push(Membership {
            controllers: names(controllers),
            path,
        });
        Ok(())
    })?;
    Ok(memberships)
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

/// Decodes the octal escapes of blanks and backslashes in paths.
fn unescape(word: &[u8]) -> String {
    let mut text = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let octal = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        text.push(octal.unwrap_or(byte));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&text).into_owned()
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
        )
        .unwrap();
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].point, "/sys/fs/cgroup/cpu acct");
        let memberships =
            parse_memberships(b"2:cpu,cpuacct:/docker/ab/x\n1:name=systemd:/\n0::/a:b\n").unwrap();
        let group = |controller| hierarchy(controller, &mounts, &memberships);
        assert_eq!(group("cpu"), Some((&mounts[0], "/docker/ab/x")));
        assert_eq!(group("memory"), Some((&mounts[1], "/a:b")));
        assert!(parse_mounts(b"1 2 3:4 / /x rw").is_err());
        assert!(parse_memberships(b"0:/x\n").is_err());
    }
}
