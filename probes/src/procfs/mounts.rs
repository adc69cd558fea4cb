//! Finds the control groups of a process (`/proc/self/mountinfo`, `/proc/PID/cgroup`).

use super::fields::Cursor;
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
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        if !cursor.remainder().is_empty() {
            for _ in 0..3 {
                need(&mut cursor, "device")?;
            }
            let root = unescape(need(&mut cursor, "root")?);
            let point = unescape(need(&mut cursor, "mount point")?);
            // Optional fields come before the dash.
            while need(&mut cursor, "-")? != b"-" {}
            let kind = need(&mut cursor, "type")?;
            need(&mut cursor, "source")?;
            let options = cursor.word().unwrap_or_default();
            let controllers = match kind {
                b"cgroup" => {
                    let names = options.split(|byte| *byte == b',');
                    Some(Some(
                        names
                            .map(|name| String::from_utf8_lossy(name).into_owned())
                            .collect(),
                    ))
                }
                b"cgroup2" => Some(None),
                _ => None,
            };
            mounts.extend(controllers.map(|controllers| Mount {
                root,
                point,
                controllers,
            }));
        }
        cursor.next_line();
    }
    Ok(mounts)
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
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        if !cursor.remainder().is_empty() {
            let number = cursor
                .until(b':')
                .ok_or_else(|| cursor.error("hierarchy", "no `:`"))?;
            cursor.convert::<u32>("hierarchy", number)?;
            let names = cursor
                .until(b':')
                .ok_or_else(|| cursor.error("controllers", "no second `:`"))?;
            let names = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
            let controllers = names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect();
            let path = String::from_utf8_lossy(cursor.remainder()).into_owned();
            if !path.starts_with('/') {
                return Err(cursor.error("path", "it does not start with `/`"));
            }
            memberships.push(Membership { controllers, path });
        }
        cursor.next_line();
    }
    Ok(memberships)
}

/// The hierarchy of `controller` for a process, and the group of the process in it.
#[must_use]
pub fn hierarchy<'a>(
    controller: &str,
    mounts: &'a [Mount],
    memberships: &'a [Membership],
) -> Option<(&'a Mount, &'a str)> {
    let first = memberships
        .iter()
        .find(|member| member.controllers.iter().any(|name| name == controller));
    let is_first = |mount: &&Mount| {
        mount
            .controllers
            .as_ref()
            .is_some_and(|names| names.iter().any(|name| name == controller))
    };
    match first {
        Some(member) => mounts
            .iter()
            .find(is_first)
            .map(|mount| (mount, member.path.as_str())),
        None => {
            let member = memberships.iter().find(|member| member.controllers.is_empty())?;
            let mount = mounts.iter().find(|mount| mount.controllers.is_none())?;
            Some((mount, member.path.as_str()))
        }
    }
}

fn need<'a>(cursor: &mut Cursor<'a>, item: &'static str) -> Result<&'a [u8], ParseError> {
    cursor
        .word()
        .ok_or_else(|| cursor.error(item, "the line ends before it"))
}

/// Decodes the octal escapes of blanks and backslashes in paths.
fn unescape(word: &[u8]) -> String {
    let mut text = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match octal {
            Some(digits) => {
                let value = digits
                    .iter()
                    .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                text.push(value as u8);
                rest = &after[3..];
            }
            None => {
                text.push(byte);
                rest = after;
            }
        }
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
