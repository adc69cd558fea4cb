//! Parses `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system at the mount point, such as a control group in a container.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// The options of the mount.
    pub options: String,
    /// The type of the file system.
    pub filesystem: String,
    /// The device, or another text.
    pub source: String,
    /// The options of the file system.
    pub super_options: String,
}

/// Parses the file; lines that are not of this format are left out.
///
/// ```text
/// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
/// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
/// ```
pub fn parse(file: &[u8]) -> impl Iterator<Item = Mount> {
    file.split(|byte| *byte == b'\n')
        .filter_map(|line| mount(&String::from_utf8_lossy(line)))
}

fn mount(line: &str) -> Option<Mount> {
    // Optional fields come before the dash.
    let (mount, device) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3).map(unescaped);
    let mut device = device.split(' ').map(unescaped);
    Some(Mount {
        root: mount.next()?,
        point: mount.next()?,
        options: mount.next()?,
        filesystem: device.next()?,
        source: device.next()?,
        super_options: device.next().unwrap_or_default(),
    })
}

/// Decodes the octal escapes of blanks and backslashes.
fn unescaped(field: &str) -> String {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
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
    fn fields_are_those_of_the_manual_page() {
        let file = b"36 35 98:0 /mnt1 /my\\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
            nonsense\n1 2 3:4 / /x rw\n31 23 0:28 / /a\\134b rw - tmpfs  rw,mode=755\n";
        let mounts: Vec<_> = parse(file)
            .map(|each| {
                [
                    each.root,
                    each.point,
                    each.options,
                    each.filesystem,
                    each.source,
                    each.super_options,
                ]
            })
            .collect();
        assert_eq!(
            mounts,
            [
                [
                    "/mnt1",
                    "/my disk",
                    "rw,noatime",
                    "ext3",
                    "/dev/root",
                    "rw,errors=continue"
                ],
                ["/", "/a\\b", "rw", "tmpfs", "", "rw,mode=755"],
            ]
        );
    }
}
