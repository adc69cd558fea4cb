//! Reads functions, names and build ID of an ELF file (elf(5)).
//!
//! The file may be hostile, and change while it is read: it is read with `pread`, sizes are checked
//! before memory is allocated, and symbols are read in pieces.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use object::Endianness;
use object::FileKind;
use object::ReadCache;
use object::ReadCacheOps;
use object::ReadRef;
use object::elf;
use object::elf::FileHeader32;
use object::elf::FileHeader64;
use object::pod::bytes_of_slice_mut;
use object::pod::slice_from_all_bytes;
use object::read::elf::FileHeader;
use object::read::elf::ProgramHeader;
use object::read::elf::SectionHeader;
use object::read::elf::Sym;
use serde::Deserialize;
use serde::Serialize;

use super::demangle::demangle;

/// The most symbols of a table: the largest programs, with their debug file, have a million.
const MAX_SYMBOLS: u64 = 4 << 20;
const MAX_SECTIONS: u32 = 1 << 16;
/// Names of functions at one address from which one is chosen.
const MAX_ALIASES: usize = 16;
/// The longest name in the file, in bytes; a longer one is cut.
const MAX_MANGLED: usize = 4096;
const MAX_NOTES: u64 = 1 << 16;
const MAX_BUILD_ID: usize = 64;
const MAX_SEGMENTS: usize = 64;
/// Symbols that are read at once, in units of eight bytes.
const PIECE: usize = 1 << 17;

/// A part of the file that is mapped at a virtual address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Virtual address.
    pub address: u64,
}

/// What a file is, apart from its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The segments.
    pub segments: Vec<Segment>,
    /// The build ID in hexadecimal digits.
    pub build_id: Option<String>,
    /// The name in section `.gnu_debuglink`.
    pub link: Option<String>,
    /// Whether it has no symbols but those for dynamic linking.
    pub is_stripped: bool,
}

impl Description {
    /// The lowest virtual address, from which those of functions count.
    pub fn base(&self) -> u64 {
        let addresses = self.segments.iter().map(|segment| segment.address);
        addresses.min().unwrap_or(0)
    }
}

/// Which argument of `dispatch_command` is the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Argument {
    /// `dispatch_command(enum_server_command, THD *, …)`: MariaDB and MySQL before 5.7.
    First,
    /// `dispatch_command(THD *, const COM_DATA *, enum_server_command)`: MySQL 5.7 and newer.
    Third,
}

/// The function that handles one command of the protocol, in MySQL and MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Which argument is the command.
    pub argument: Argument,
}

/// A symbol table and its names: offsets in the file and sizes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Table {
    symbols: (u64, u64),
    names: (u64, u64),
}

/// A function in a symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    address: u64,
    size: u64,
    /// Offset of the name in the file, and the bytes after it in the table of names.
    name: (u64, u64),
}

/// An open ELF file.
#[derive(Debug)]
pub struct Elf<'file> {
    file: &'file File,
    endian: Endianness,
    is_64: bool,
    tables: Vec<Table>,
    /// What it is.
    pub description: Description,
}

impl<'file> Elf<'file> {
    /// Reads the headers; `None` if it is not an ELF file.
    pub fn open(file: &'file File) -> Option<Self> {
        let cache = ReadCache::new(Positioned { file, position: 0 });
        match FileKind::parse(&cache).ok()? {
            FileKind::Elf64 => Self::parse::<FileHeader64<Endianness>>(file, &cache),
            FileKind::Elf32 => Self::parse::<FileHeader32<Endianness>>(file, &cache),
            _ => None,
        }
    }

    fn parse<Header: FileHeader<Endian = Endianness>>(
        file: &'file File,
        cache: &ReadCache<Positioned<'_>>,
    ) -> Option<Self> {
        let header = Header::parse(cache).ok()?;
        let endian = header.endian().ok()?;
        let mut read = Self {
            file,
            endian,
            is_64: header.is_class_64(),
            tables: vec![],
            description: Description {
                is_stripped: true,
                ..Description::default()
            },
        };
        if header.phnum(endian, cache).ok()? > MAX_SECTIONS
            || header.shnum(endian, cache).ok()? > MAX_SECTIONS
        {
            return None;
        }
        let loaded = header.program_headers(endian, cache).ok()?.iter();
        let loaded = loaded.filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        for segment in loaded.take(MAX_SEGMENTS) {
            let (offset, size) = segment.file_range(endian);
            let address = segment.p_vaddr(endian).into();
            read.description.segments.push(Segment {
                offset,
                size,
                address,
            });
        }
        let sections = header.section_headers(endian, cache).ok()?;
        let names = header.section_strings(endian, cache, sections).ok()?;
        for section in sections {
            let (offset, size) = section.file_range(endian).unwrap_or_default();
            match section.sh_type(endian) {
                kind @ (elf::SHT_SYMTAB | elf::SHT_DYNSYM) => {
                    let strings = sections.get(section.sh_link(endian) as usize);
                    read.tables.extend(
                        strings
                            .and_then(|strings| strings.file_range(endian))
                            .map(|names| Table {
                                symbols: (offset, size),
                                names,
                            }),
                    );
                    read.description.is_stripped &= kind == elf::SHT_DYNSYM || size == 0;
                }
                elf::SHT_NOTE if size <= MAX_NOTES && read.description.build_id.is_none() => {
                    read.description.build_id = build_id(section, endian, cache);
                }
                _ if section.name(endian, names) == Ok(b".gnu_debuglink") => {
                    let text = cache
                        .read_bytes_at(offset, size.min(MAX_NOTES))
                        .unwrap_or_default();
                    let name = text.split(|byte| *byte == 0).next().unwrap_or_default();
                    read.description.link = str::from_utf8(name).ok().map(str::to_owned);
                }
                _ => {}
            }
        }
        // One of each kind.
        read.tables.truncate(2);
        Some(read)
    }

    /// First address, from `base`, and size of the functions, sorted and without two of one address;
    /// a size of 0 is unknown.
    pub fn functions(&self, base: u64) -> Vec<(u32, u32)> {
        let mut ranges = vec![];
        self.for_each(|function| {
            let start = function.address.checked_sub(base).map(u32::try_from);
            if let Some(Ok(start)) = start {
                ranges.push((start, u32::try_from(function.size).unwrap_or(u32::MAX)));
            }
        });
        // The largest of several functions at one address comes first and stays.
        ranges.sort_unstable_by_key(|(start, size)| (*start, u32::MAX - size));
        ranges.dedup_by_key(|(start, _)| *start);
        ranges
    }

    /// The demangled names of the functions at these virtual addresses.
    pub fn names(&self, addresses: &[u64]) -> Vec<Option<String>> {
        let mut found: BTreeMap<u64, Vec<Function>> =
            addresses.iter().map(|address| (*address, vec![])).collect();
        self.for_each(|function| {
            if let Some(aliases) = found.get_mut(&function.address)
                && aliases.len() < MAX_ALIASES
            {
                aliases.push(function);
            }
        });
        let name = |address: &u64| {
            let aliases = found.get(address)?;
            let largest = aliases.iter().map(|function| function.size).max()?;
            let aliases = aliases.iter().filter(|function| function.size == largest);
            let name = aliases
                .map(|function| self.name(function))
                .max_by(|left, right| rank(left).cmp(&rank(right)))?;
            (!name.is_empty()).then(|| demangle(&name))
        };
        addresses.iter().map(name).collect()
    }

    /// `dispatch_command`; `None` if it is not a server, or its function has other parameters.
    pub fn dispatch(&self) -> Option<Dispatch> {
        let mut found = None;
        self.for_each(|function| {
            if found.is_none() {
                found = argument(&self.name(&function)).map(|argument| (function.address, argument));
            }
        });
        let (address, argument) = found?;
        let offset = self.description.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.size).then(|| segment.offset.checked_add(within))?
        })?;
        Some(Dispatch { offset, argument })
    }

    fn for_each(&self, mut take: impl FnMut(Function)) {
        for table in &self.tables {
            if self.is_64 {
                self.read_table::<elf::Sym64<Endianness>>(table, &mut take);
            } else {
                self.read_table::<elf::Sym32<Endianness>>(table, &mut take);
            }
        }
    }

    /// Reads a table in pieces; none of a table that is too long.
    fn read_table<Symbol: Sym<Endian = Endianness>>(&self, table: &Table, take: &mut impl FnMut(Function)) {
        let (start, size) = table.symbols;
        let entry = size_of::<Symbol>() as u64;
        let count = size / entry;
        if count > MAX_SYMBOLS {
            return;
        }
        let mut piece = vec![0u64; PIECE.next_multiple_of(size_of::<Symbol>() / 4)];
        let bytes = bytes_of_slice_mut(&mut piece);
        let whole = bytes.len() as u64 / entry * entry;
        let end = start.saturating_add(count * entry);
        let mut at = start;
        while at < end {
            let length = whole.min(end - at) as usize;
            if self.file.read_exact_at(&mut bytes[..length], at).is_err() {
                return;
            }
            for symbol in slice_from_all_bytes::<Symbol>(&bytes[..length]).unwrap_or_default() {
                let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
                let (names, size) = table.names;
                let name = u64::from(symbol.st_name(self.endian));
                if is_function && !symbol.is_undefined(self.endian) && name < size {
                    take(Function {
                        address: symbol.st_value(self.endian).into(),
                        size: symbol.st_size(self.endian).into(),
                        name: (names.saturating_add(name), size - name),
                    });
                }
            }
            at += length as u64;
        }
    }

    fn name(&self, function: &Function) -> Vec<u8> {
        let (offset, rest) = function.name;
        let mut name = vec![];
        // Most names are short.
        for length in [128, MAX_MANGLED] {
            name.resize(length.min(usize::try_from(rest).unwrap_or(length)), 0);
            let read = self.file.read_at(&mut name, offset).unwrap_or(0);
            name.truncate(read);
            if let Some(end) = name.iter().position(|byte| *byte == 0) {
                name.truncate(end);
                break;
            }
        }
        name
    }
}

/// Which of two names of one address is used, as in perf (`choose_best_symbol`): the one with fewer
/// leading underscores, then the longer one.
pub fn rank(name: &[u8]) -> (usize, usize, &[u8]) {
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    (usize::MAX - underscores, name.len(), name)
}

fn build_id<Section: SectionHeader<Endian = Endianness>>(
    section: &Section,
    endian: Endianness,
    cache: &ReadCache<Positioned<'_>>,
) -> Option<String> {
    let mut notes = section.notes(endian, cache).ok()??;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            let digits = note.desc().iter().take(MAX_BUILD_ID);
            return Some(digits.map(|byte| format!("{byte:02x}")).collect());
        }
    }
    None
}

/// Which argument is the command in the function of this name (Itanium C++ ABI, "External Names");
/// `None` for all other functions.
fn argument(name: &[u8]) -> Option<Argument> {
    let arguments = name.strip_prefix(b"_Z16dispatch_command")?;
    // A clone by the compiler (`.cold`, `.isra.0`) is not the function, or has other parameters.
    if arguments.contains(&b'.') {
        None
    } else if arguments.starts_with(b"19enum_server_commandP3THD") {
        Some(Argument::First)
    } else if arguments.starts_with(b"P3THDPK8COM_DATA19enum_server_command") {
        Some(Argument::Third)
    } else {
        None
    }
}

/// Reads a file at a position that no other process shares.
#[derive(Debug)]
struct Positioned<'file> {
    file: &'file File,
    position: u64,
}

impl ReadCacheOps for Positioned<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(drop)
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let length = self.file.read_at(buffer, self.position).map_err(drop)?;
        self.position += length as u64;
        Ok(length)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        self.file.read_exact_at(buffer, self.position).map_err(drop)?;
        self.position += buffer.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::symbols::maps;

    #[test]
    fn name_shows_which_argument_is_the_command() {
        for (name, expected) in [
            (
                "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command",
                Some(Argument::Third),
            ),
            (
                "_Z16dispatch_command19enum_server_commandP3THDPcjb",
                Some(Argument::First),
            ),
            (
                "_Z16dispatch_command19enum_server_commandP3THDPcj",
                Some(Argument::First),
            ),
            (
                "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command.cold",
                None,
            ),
            ("_Z16dispatch_commandP3THD", None),
            ("_Z20dispatch_sql_commandP3THDP12Parser_state", None),
            ("dispatch_command", None),
        ] {
            assert_eq!(argument(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn own_program_has_this_function() {
        let file = File::open("/proc/self/exe").unwrap();
        let elf = Elf::open(&file).unwrap();
        assert!(!elf.description.is_stripped);
        let base = elf.description.base();
        let here = own_program_has_this_function as fn() as usize as u64;
        let maps = fs::read("/proc/self/maps").unwrap();
        let mappings = maps::parse(&maps).unwrap();
        let mapping = maps::find(&mappings, here).unwrap();
        let offset = here - mapping.start + mapping.offset;
        let address = elf.description.segments.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.size).then_some(segment.address + within)
        });
        let address = address.unwrap();
        let start = u32::try_from(address - base).unwrap();
        assert!(
            elf.functions(base)
                .iter()
                .any(|(each, size)| *each == start && *size > 0)
        );
        let names = elf.names(&[0, address]);
        assert_eq!(names[0], None);
        assert!(
            names[1]
                .as_ref()
                .unwrap()
                .ends_with("::own_program_has_this_function"),
            "{names:?}"
        );
        assert_eq!(elf.dispatch(), None);
    }

    #[test]
    fn other_file_is_not_read() {
        for path in ["/proc/self/status", "/etc/passwd", "/dev/null"] {
            assert!(Elf::open(&File::open(path).unwrap()).is_none(), "{path}");
        }
    }
}
