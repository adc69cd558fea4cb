//! A set of CPUs, or of other things that the kernel numbers, as a mask in the kernel's layout.

use std::fmt;
use std::str::FromStr;

/// The maximum number of CPUs that Linux supports; a larger CPU number is a typing error.
const MAX_CPUS: u32 = 8192;

/// A set of CPUs, in the kernel's list format as text: `0-3,8` (cpuset(7)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet {
    /// The mask.
    pub words: [u64; Self::WORDS],
}

impl CpuSet {
    /// Words of the mask.
    pub const WORDS: usize = MAX_CPUS as usize / 64;
    /// The set without CPUs.
    pub const EMPTY: Self = Self {
        words: [0; Self::WORDS],
    };

    /// The CPUs in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        (0..MAX_CPUS).filter(|cpu| self.contains(*cpu))
    }

    /// True if `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.words.get(cpu as usize / 64);
        word.is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// The CPUs of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = *self;
        for (word, other) in rest.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
        rest
    }

    /// True if the set has no CPU.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// True if every CPU of this set is in the other.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a CPU list such as 0-3,8");
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let mut set = Self::EMPTY;
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last >= MAX_CPUS {
                return Err(wrong());
            }
            for cpu in first..=last {
                set.words[cpu as usize / 64] |= 1 << (cpu % 64);
            }
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpu = 0;
        let mut separator = "";
        while cpu < MAX_CPUS {
            if !self.contains(cpu) {
                cpu += 1;
                continue;
            }
            let first = cpu;
            while self.contains(cpu + 1) {
                cpu += 1;
            }
            if first == cpu {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{cpu}")?;
            }
            separator = ",";
            cpu += 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_format_of_the_kernel() {
        for (given, printed) in [
            ("0", "0"),
            ("8,0-1,8", "0-1,8"),
            ("63-65", "63-65"),
            ("8191", "8191"),
        ] {
            assert_eq!(given.parse::<CpuSet>().unwrap().to_string(), printed);
        }
        for malformed in ["", "a", "3-1", "0,", "-1", "1-2-3", "0-8192", "0-99999999"] {
            assert!(malformed.parse::<CpuSet>().is_err(), "{malformed}");
        }
    }

    #[test]
    fn within_means_every_cpu() {
        let [wide, within, beyond]: [CpuSet; 3] = ["0-3", "1,2", "1,4"].map(|list| list.parse().unwrap());
        assert!(within.is_within(&wide) && !beyond.is_within(&wide));
    }
}
