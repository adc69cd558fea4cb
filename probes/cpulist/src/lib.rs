//! Parses the kernel's CPU lists, such as `0-3,8` (cpuset(7), "List format"), and its list of mounts, reads small
//! files of procfs and sysfs, and finds the interrupts of devices.

pub mod interrupts;
pub mod mountinfo;
pub mod small_files;

/// The maximum number of CPUs that Linux supports; a larger CPU number is a typing error.
pub const MAX_CPUS: u32 = 8192;

/// The CPUs of a list in ascending order, without duplicates; `None` if the text is not a CPU list.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = vec![];
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u32 = first.trim().parse().ok()?;
        let last: u32 = last.trim().parse().ok()?;
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_format_of_the_kernel() {
        assert_eq!(parse("0-2,8,2"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse("8191"), Some(vec![8191]));
        for malformed in ["", "a", "3-1", "0,", "-1", "1-2-3", "0-8192", "0-99999999"] {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
    }
}
