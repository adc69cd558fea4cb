//! The programs and libraries that sampled processes execute: their functions and names.
//!
//! The file of a module is opened when its first address is sampled, through the process, which may
//! be in another mount namespace. It stays open, so that the process and the file's name may be gone
//! when the names are read. Until then only the addresses of the functions are in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use blazesym::symbolize::Input;
use blazesym::symbolize::Symbolizer;
use blazesym::symbolize::source::Elf;
use blazesym::symbolize::source::Source;
use object::Object;
use object::ObjectSegment;
use object::ObjectSymbol;
use object::ReadCache;
use object::SymbolKind;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::Stat;
use rustix::fs::fstat;
use rustix::fs::open;

use super::debug_file;
use super::maps::Mapping;
use crate::Host;

/// The most modules: each has an open file, or two. The code of others is unknown.
const MAX_MODULES: usize = 500;

/// A module by the device, inode number and name of its mapping.
type Key = (String, u64, String);

/// A module.
#[derive(Debug)]
pub struct Module {
    /// Its path in the mount namespace of the process that executed it first, or a name in
    /// brackets.
    pub path: String,
    /// The build ID of its file in hexadecimal digits.
    pub build_id: Option<String>,
    /// The files with its symbols: its own, and its debug file.
    files: Vec<File>,
    functions: Functions,
}

/// All modules, by their number.
#[derive(Debug)]
pub struct Modules {
    list: Vec<Module>,
    numbers: HashMap<Key, u32>,
}

impl Modules {
    /// The number of the kernel.
    pub const KERNEL: u32 = 0;
    /// The number of all addresses that no mapping contains.
    pub const UNKNOWN: u32 = 1;

    /// The modules that always exist.
    pub fn new() -> Self {
        let list = ["[kernel]", "[unknown]"].map(Module::without_file).into();
        Self {
            list,
            numbers: HashMap::new(),
        }
    }

    /// The modules in the order of their numbers.
    pub fn list(&self) -> &[Module] {
        &self.list
    }

    /// The number of a mapping's module; opens its file at the first call.
    pub fn number(&mut self, host: &Host, pid: u32, mapping: &Mapping) -> u32 {
        let key = (mapping.device.clone(), mapping.inode, mapping.name.clone());
        let list = &mut self.list;
        if list.len() >= MAX_MODULES {
            return self.numbers.get(&key).copied().unwrap_or(Self::UNKNOWN);
        }
        *self.numbers.entry(key).or_insert_with(|| {
            list.push(Module::open(host, pid, mapping));
            list.len() as u32 - 1
        })
    }

    /// The function of module `number` at an offset in its file; `None` if no symbol contains it.
    pub fn function(&self, number: u32, offset: u64) -> Option<u64> {
        self.list.get(number as usize)?.functions.find(offset)
    }
}

impl Module {
    fn without_file(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            build_id: None,
            files: vec![],
            functions: Functions::default(),
        }
    }

    /// Reads the functions of a file; a file that cannot be read has none.
    fn open(host: &Host, pid: u32, mapping: &Mapping) -> Self {
        let mut module = Self::without_file(&mapping.name);
        if mapping.inode == 0 {
            return module;
        }
        let Some(file) = open_file(host, pid, mapping) else {
            return module;
        };
        let cache = ReadCache::new(&file);
        if let Ok(elf) = object::File::parse(&cache) {
            let build_id = elf.build_id().ok().flatten();
            module.build_id = build_id.map(hexadecimal);
            module.functions = Functions::new(&elf);
            let is_stripped = elf.symbols().next().is_none();
            let debug = is_stripped.then(|| debug_file::find(host, pid, &mapping.name, &elf));
            module.files.extend(debug.flatten());
            drop(cache);
            for debug in &module.files {
                let cache = ReadCache::new(debug);
                if let Ok(elf) = object::File::parse(&cache) {
                    module.functions.add(&elf);
                }
            }
            module.files.push(file);
        }
        module
    }

    /// The demangled names of functions, in the order of their addresses.
    pub fn names(&self, symbolizer: &Symbolizer, functions: &[u64]) -> Vec<Option<String>> {
        let mut names = vec![None; functions.len()];
        for file in self.files.iter().filter(|_| !functions.is_empty()) {
            let mut elf = Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
            elf.debug_syms = false;
            let found = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(functions));
            for (name, found) in names.iter_mut().zip(found.unwrap_or_default()) {
                if name.is_none() {
                    *name = found.as_sym().map(|symbol| symbol.name.clone().into_owned());
                }
            }
        }
        names
    }
}

/// Opens the file of a mapping. The path of a mapping is one below the root of the process in
/// another mount namespace, and one of this namespace after a `chroot`. The program of a process
/// can be opened after its file was removed.
///
/// A process can map any file, so the type is checked before the file is opened for reading.
fn open_file(host: &Host, pid: u32, mapping: &Mapping) -> Option<File> {
    let paths = [
        host.proc(&format!("{pid}/exe")),
        host.proc(&format!("{pid}/root{}", mapping.name)),
        mapping.name.clone().into(),
    ];
    let open_path = |path: PathBuf| -> io::Result<Option<File>> {
        let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        open_regular(host, &handle, |stat| stat.st_ino == mapping.inode)
    };
    paths.into_iter().find_map(|path| open_path(path).ok().flatten())
}

/// The hexadecimal digits of a build ID.
pub fn hexadecimal(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Opens a file for reading if it is a regular file that `is_wanted` accepts. Opening another file,
/// such as a device, can have effects.
pub fn open_regular(
    host: &Host,
    handle: &OwnedFd,
    is_wanted: impl FnOnce(&Stat) -> bool,
) -> io::Result<Option<File>> {
    let stat = fstat(handle)?;
    let is_wanted = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && is_wanted(&stat);
    let path = host.proc(&format!("self/fd/{}", handle.as_raw_fd()));
    is_wanted.then(|| File::open(path)).transpose()
}

/// A part of the file that is mapped at a virtual address.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// The address ranges of the functions of a file, relative to its first segment.
#[derive(Debug, Default)]
struct Functions {
    segments: Vec<Segment>,
    base: u64,
    /// First address and size, sorted and without two of one address; a size of 0 is unknown.
    ranges: Vec<(u32, u32)>,
}

impl Functions {
    fn new<'data>(elf: &impl Object<'data>) -> Self {
        let segments: Vec<_> = elf
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                Segment {
                    offset,
                    size,
                    address: segment.address(),
                }
            })
            .collect();
        let base = segments.iter().map(|segment| segment.address).min().unwrap_or(0);
        let mut functions = Self {
            segments,
            base,
            ranges: vec![],
        };
        functions.add(elf);
        functions
    }

    /// Adds the symbols of a file for the same addresses.
    fn add<'data>(&mut self, elf: &impl Object<'data>) {
        let range = |address: u64, size: u64| {
            let start = u32::try_from(address.checked_sub(self.base)?).ok()?;
            Some((start, u32::try_from(size).unwrap_or(u32::MAX)))
        };
        let added = elf
            .dynamic_symbols()
            .chain(elf.symbols())
            .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| range(symbol.address(), symbol.size()));
        let ranges = &mut self.ranges;
        ranges.extend(added);
        // The largest of several functions at one address comes first and stays.
        ranges.sort_unstable_by_key(|(start, size)| (*start, u32::MAX - size));
        ranges.dedup_by_key(|(start, _)| *start);
        ranges.shrink_to_fit();
    }

    /// The virtual address of the function at an offset in the file.
    fn find(&self, offset: u64) -> Option<u64> {
        let within = |segment: &&Segment| segment.offset <= offset && offset - segment.offset < segment.size;
        let segment = self.segments.iter().find(within)?;
        let address = u32::try_from(segment.address - self.base + (offset - segment.offset)).ok()?;
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let (start, size) = *self.ranges.get(after.checked_sub(1)?)?;
        (size == 0 || address - start < size).then_some(self.base + u64::from(start))
    }
}
