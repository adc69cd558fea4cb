//! Finds the functions of kernel addresses in `/proc/kallsyms`.
//!
//! During the recording only the addresses of the functions are in memory; the names are read at
//! its end. The kernel decides when the file is opened whether it shows addresses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Seek;

use super::modules::Place;
use crate::Host;
use crate::symbols::elf::rank;

/// The functions of the kernel, its modules and its eBPF programs.
#[derive(Debug)]
pub struct Kallsyms {
    file: Option<File>,
    /// The addresses of the functions, sorted.
    functions: Vec<u64>,
    /// Why there are no functions.
    reason: Option<String>,
}

impl Kallsyms {
    /// Reads the addresses.
    pub fn open(host: &Host) -> Self {
        let path = host.proc("kallsyms");
        let mut symbols = Self {
            file: None,
            functions: vec![],
            reason: None,
        };
        let read = File::open(&path).and_then(|file| {
            for_each(&file, |address, _| symbols.functions.push(address))?;
            Ok(file)
        });
        symbols.functions.retain(|address| *address > 0);
        symbols.functions.sort_unstable();
        symbols.functions.dedup();
        symbols.functions.shrink_to_fit();
        match read {
            Ok(_) if symbols.functions.is_empty() => {
                symbols.reason = Some(format!(
                    "{}: the kernel hides addresses; run as root, or with CAP_SYSLOG, and with the sysctl \
                     kernel.kptr_restrict below 2",
                    path.display()
                ));
            }
            Ok(file) => symbols.file = Some(file),
            Err(error) => {
                symbols.functions = vec![];
                symbols.reason = Some(format!(
                    "{}: {error}; build the kernel with CONFIG_KALLSYMS",
                    path.display()
                ));
            }
        }
        symbols
    }

    /// Why there are no functions.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The function that contains `address`.
    pub fn place(&self, address: u64) -> Place {
        self.function(address).map_or(Place::Module, Place::Function)
    }

    fn function(&self, address: u64) -> Option<u64> {
        let after = self.functions.partition_point(|start| *start <= address);
        self.functions.get(after.checked_sub(1)?).copied()
    }

    /// The names of functions by their first address.
    pub fn names(&self, functions: impl Iterator<Item = u64>) -> BTreeMap<u64, String> {
        let mut names: BTreeMap<u64, String> = functions.map(|address| (address, String::new())).collect();
        let Some(file) = &self.file else {
            return BTreeMap::new();
        };
        let read = for_each(file, |address, name| {
            if let Some(known) = names.get_mut(&address)
                && (known.is_empty() || rank(name.as_bytes()) > rank(known.as_bytes()))
            {
                name.clone_into(known);
            }
        });
        // Names that were read before an error are correct.
        drop(read);
        names.retain(|_, name| !name.is_empty());
        names
    }
}

/// Calls `take` with address and name of every function (`kernel/kallsyms.c`, `s_show`); skips
/// lines of another format.
///
/// ```text
/// ffffffff81a3c2f0 T tcp_sendmsg_locked
/// ffffffffc0401000 t nf_conntrack_in [nf_conntrack]
/// ```
fn for_each(mut file: &File, mut take: impl FnMut(u64, &str)) -> std::io::Result<()> {
    file.rewind()?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if let Some((address, name)) = parse_line(&line) {
            take(address, name);
        }
        line.clear();
    }
    Ok(())
}

fn parse_line(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
    Some((address, words.next()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn kallsyms(text: &str) -> (tempfile::TempDir, Kallsyms) {
        let proc = tempfile::tempdir().unwrap();
        fs::write(proc.path().join("kallsyms"), text).unwrap();
        let symbols = Kallsyms::open(&Host::new(proc.path(), "/nonexistent"));
        (proc, symbols)
    }

    #[test]
    fn address_belongs_to_the_function_before_it() {
        let (_proc, symbols) = kallsyms(
            "0000000000000000 A fixed_percpu_data\n\
             ffffffff81000100 t __do_sys_read\n\
             ffffffff81000100 T ksys_read\n\
             ffffffff81000080 T first\n\
             ffffffff81000180 D some_data\n\
             ffffffffc0401000 t nf_conntrack_in\t[nf_conntrack]\n",
        );
        assert_eq!(symbols.reason(), None);
        assert_eq!(symbols.function(0xffff_ffff_8100_0000), None);
        assert_eq!(
            symbols.function(0xffff_ffff_8100_00ff),
            Some(0xffff_ffff_8100_0080)
        );
        let function = symbols.function(0xffff_ffff_8100_0190).unwrap();
        let names = symbols.names([function, 0xffff_ffff_c040_1000, 7].into_iter());
        let names: Vec<_> = names.into_values().collect();
        assert_eq!(names, ["ksys_read", "nf_conntrack_in"]);
    }

    #[test]
    fn hidden_addresses_have_a_reason() {
        let (_proc, symbols) = kallsyms("0000000000000000 T _text\n0000000000000000 T ksys_read\n");
        assert_eq!(symbols.function(0xffff_ffff_8100_0000), None);
        assert!(symbols.reason().unwrap().contains("kptr_restrict"));
        assert!(symbols.names([0].into_iter()).is_empty());
        let missing = Kallsyms::open(&Host::new("/nonexistent", "/nonexistent"));
        assert!(missing.reason().unwrap().starts_with("/nonexistent/kallsyms: "));
    }
}
