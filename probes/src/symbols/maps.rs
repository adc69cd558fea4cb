//! Parses the executable mappings of a process and finds the one of an address.

use serde::Deserialize;
use serde::Serialize;

use crate::procfs::fields::Cursor;
use crate::source::ParseError;

/// The bytes of `/proc/PID/maps` that are read: 100,000 mappings, as of a server with 50,000 threads.
pub const MAX_TEXT: u64 = 8 << 20;
/// The most executable mappings of a process; further ones are unknown.
const MAX_MAPPINGS: usize = 4096;

/// An executable mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Offset of the first address in the file, in bytes.
    pub offset: u64,
    /// Device of the file as printed, and inode number; the inode is 0 for memory without a file.
    pub device: String,
    /// See `device`.
    pub inode: u64,
    /// Path of the file in the mount namespace of the process; `[vdso]` and the like; `[anon]`
    /// where the kernel prints no name.
    pub name: String,
}

/// Parses the executable mappings of `/proc/PID/maps` (`fs/proc/task_mmu.c`, `show_map_vma`), in
/// ascending order of their addresses.
///
/// ```text
/// 55d5b2a00000-55d5b4c3e000 r-xp 00a00000 08:01 1835042                    /usr/sbin/mysqld
/// ```
///
/// # Errors
/// When a line does not have this format.
pub fn parse(text: &[u8]) -> Result<Vec<Mapping>, ParseError> {
    let mut mappings = vec![];
    let mut cursor = Cursor::new(text);
    while !cursor.at_end() && mappings.len() < MAX_MAPPINGS {
        let start = cursor.until(b'-').and_then(hexadecimal);
        let end = cursor.word().and_then(hexadecimal);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(cursor.error("address", "not a range of addresses"));
        };
        let permissions = cursor.word().unwrap_or_default();
        if permissions.get(2) == Some(&b'x') {
            let offset = cursor.word().and_then(hexadecimal);
            let offset = offset.ok_or_else(|| cursor.error("offset", "not a hexadecimal number"))?;
            let device = String::from_utf8_lossy(cursor.word().unwrap_or_default()).into_owned();
            let inode = cursor.uint("inode");
            let inode = inode.ok_or_else(|| cursor.error("inode", "not a number"))?;
            mappings.push(Mapping {
                start,
                end,
                offset,
                device,
                inode,
                name: name(cursor.remainder()),
            });
        }
        cursor.next_line();
    }
    Ok(mappings)
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(word).ok()?, 16).ok()
}

/// A name without the mark of a file that was removed or replaced after it was mapped.
fn name(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.strip_suffix(" (deleted)").unwrap_or(&text) {
        "" => "[anon]".to_owned(),
        name => name.to_owned(),
    }
}

/// The mapping that contains `address`.
pub fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    (address < mapping.end).then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d5b2000000-55d5b2a00000 r--p 00000000 08:01 1835042                    /usr/sbin/mysqld
55d5b2a00000-55d5b4c3e000 r-xp 00a00000 08:01 1835042                    /usr/sbin/mysqld
55d5b5000000-55d5b5021000 rw-p 00000000 00:00 0                          [heap]
7f10a0000000-7f10a0001000 rwxp 00000000 00:00 0 
7f10a1000000-7f10a1156000 r-xp 00028000 fe:00 99    /opt/a b/libc.so.6 (deleted)
7ffd3c5f0000-7ffd3c5f2000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn executable_mappings_have_file_and_offset() {
        let mappings = parse(MAPS.as_bytes()).unwrap();
        let names: Vec<_> = mappings.iter().map(|mapping| mapping.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "/usr/sbin/mysqld",
                "[anon]",
                "/opt/a b/libc.so.6",
                "[vdso]",
                "[vsyscall]"
            ]
        );
        let server = find(&mappings, 0x55d5_b2a0_0000).unwrap();
        assert_eq!((server.offset, server.inode), (0xa0_0000, 1_835_042));
        assert_eq!(server.device, "08:01");
        let last = find(&mappings, 0xffff_ffff_ff60_0fff).unwrap();
        assert_eq!(last.name, "[vsyscall]");
        for outside in [0, 0x55d5_b29f_ffff, 0x55d5_b4c3_e000, u64::MAX] {
            assert_eq!(find(&mappings, outside), None, "{outside:x}");
        }
    }

    #[test]
    fn kernel_thread_has_none_and_other_text_is_refused() {
        assert_eq!(parse(b""), Ok(vec![]));
        for (text, item) in [
            ("no maps\n", "address"),
            ("1000 r-xp 0 08:01 1 /a\n", "address"),
            ("1000-2000 r-xp zero 08:01 1 /a\n", "offset"),
            ("1000-2000 r-xp 0 08:01 /a\n", "inode"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().item, item, "{text}");
        }
    }
}
