//! The programs and libraries that sampled processes execute: their functions and names.
//!
//! The helper opens the file of a module as soon as a process has mapped it and keeps it open, so that
//! the process and the file's name may be gone when it is read. In the recorder's memory are only the
//! addresses of the functions.

use std::collections::HashMap;

use crate::symbols::Answer;
use crate::symbols::Description;
use crate::symbols::Mapping;
use crate::symbols::Request;
use crate::symbols::Symbols;

/// A place in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The function with this first address.
    Function(u64),
    /// No function of the module has this address.
    Module,
    /// The offset in the file, in bytes: its functions could not be read.
    Offset(u64),
}

/// The most modules: each has an open file, or two. The code of others is unknown.
const MAX_MODULES: usize = 500;
/// The most functions of all modules, 32 MB; the largest browser has a million.
const MAX_FUNCTIONS: usize = 4 << 20;
/// Files that one request opens.
const OPEN_AT_ONCE: usize = 64;

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
    /// A process that executes it.
    pid: u32,
    functions: Functions,
}

/// What is known of the functions of a module.
#[derive(Debug)]
enum Functions {
    /// It has no file.
    None,
    /// Its file was not read yet.
    Unread,
    /// Its file was read, and its debug file was not.
    Stripped(Box<Ranges>, Request),
    /// All that there are.
    Read(Box<Ranges>),
    /// They cannot be read: places in the module are shown by their offset.
    Unreadable,
}

/// All modules, by their number.
#[derive(Debug)]
pub struct Modules {
    list: Vec<Module>,
    numbers: HashMap<Key, u32>,
    functions: usize,
}

impl Modules {
    /// The number of the kernel.
    pub const KERNEL: u32 = 0;
    /// The number of all addresses that no mapping contains.
    pub const UNKNOWN: u32 = 1;

    /// The modules that always exist.
    pub fn new() -> Self {
        let list = ["[kernel]", "[unknown]"].map(|name| Module {
            path: name.to_owned(),
            build_id: None,
            pid: 0,
            functions: Functions::None,
        });
        Self {
            list: list.into(),
            numbers: HashMap::new(),
            functions: 0,
        }
    }

    /// The modules in the order of their numbers.
    pub fn list(&self) -> &[Module] {
        &self.list
    }

    /// Opens the files of new mappings of a process. Returns false if that was not possible yet.
    pub fn open(&mut self, symbols: &Symbols, pid: u32, mappings: &[Mapping]) -> bool {
        let is_new = |mapping: &&Mapping| mapping.inode > 0 && !self.numbers.contains_key(&key(mapping));
        let mut new: Vec<_> = mappings.iter().filter(is_new).cloned().collect();
        new.sort_by_key(key);
        new.dedup_by_key(|mapping| key(mapping));
        new.truncate(MAX_MODULES.saturating_sub(self.list.len()));
        for files in new.chunks(OPEN_AT_ONCE) {
            let numbers = (self.list.len() as u32..).zip(files.iter().cloned());
            let request = Request::Open {
                pid,
                files: numbers.collect(),
            };
            // The answer is in those to later requests.
            if matches!(symbols.ask::<Vec<usize>>(&request), Answer::Busy) {
                return false;
            }
            for mapping in files {
                self.add(pid, mapping, Functions::Unread);
            }
        }
        true
    }

    /// The number of a mapping's module.
    pub fn number(&mut self, pid: u32, mapping: &Mapping) -> u32 {
        match self.numbers.get(&key(mapping)) {
            Some(number) => *number,
            None if self.list.len() >= MAX_MODULES => Self::UNKNOWN,
            None if mapping.inode == 0 => self.add(pid, mapping, Functions::None),
            None => self.add(pid, mapping, Functions::Unreadable),
        }
    }

    fn add(&mut self, pid: u32, mapping: &Mapping, functions: Functions) -> u32 {
        let number = self.list.len() as u32;
        self.list.push(Module {
            path: mapping.name.clone(),
            build_id: None,
            pid,
            functions,
        });
        self.numbers.insert(key(mapping), number);
        number
    }

    /// The place of an offset in the file of module `number`.
    pub fn place(&mut self, symbols: &Symbols, number: u32, offset: u64) -> Place {
        self.read(symbols, number);
        match self.list.get(number as usize).map(|module| &module.functions) {
            Some(Functions::Read(ranges) | Functions::Stripped(ranges, _)) => {
                ranges.find(offset).map_or(Place::Module, Place::Function)
            }
            Some(Functions::Unread | Functions::Unreadable) => Place::Offset(offset),
            Some(Functions::None) | None => Place::Module,
        }
    }

    /// Reads the functions of a module, if they are not read yet and there is time.
    fn read(&mut self, symbols: &Symbols, number: u32) {
        let Some(module) = self.list.get_mut(number as usize) else {
            return;
        };
        let room = MAX_FUNCTIONS - self.functions;
        if matches!(module.functions, Functions::Unread) {
            let request = Request::Functions { module: number };
            match symbols.ask(&request) {
                Answer::Ready(description, reply) => {
                    module.describe(number, description, reply.pairs(), room)
                }
                Answer::Failed(_) => module.functions = Functions::Unreadable,
                Answer::Later | Answer::Busy => {}
            }
        }
        if let Functions::Stripped(ranges, request) = &mut module.functions {
            match symbols.ask::<()>(request) {
                Answer::Ready((), reply) => ranges.add(reply.pairs(), room),
                Answer::Failed(_) => {}
                Answer::Later | Answer::Busy => return,
            }
            module.functions = Functions::Read(std::mem::take(ranges));
        }
        if let Functions::Read(ranges) = &mut module.functions {
            self.functions += std::mem::replace(&mut ranges.uncounted, 0);
        }
    }
}

fn key(mapping: &Mapping) -> Key {
    (mapping.device.clone(), mapping.inode, mapping.name.clone())
}

impl Module {
    fn describe(&mut self, number: u32, description: Description, functions: Vec<(u32, u32)>, room: usize) {
        let mut ranges = Box::new(Ranges::new(&description));
        ranges.add(functions, room);
        self.build_id.clone_from(&description.build_id);
        self.functions = match description.build_id {
            Some(build_id) if description.is_stripped => {
                let request = Request::DebugFile {
                    module: number,
                    pid: self.pid,
                    path: self.path.clone(),
                    build_id,
                    link: description.link,
                    base: ranges.base,
                };
                Functions::Stripped(ranges, request)
            }
            _ => Functions::Read(ranges),
        };
    }
}

/// The address ranges of the functions of a file, relative to its first segment.
#[derive(Debug, Default)]
struct Ranges {
    description: Description,
    base: u64,
    /// First address and size, sorted and without two of one address; a size of 0 is unknown.
    ranges: Vec<(u32, u32)>,
    /// Functions that are not in the sum over all modules yet.
    uncounted: usize,
}

impl Ranges {
    fn new(description: &Description) -> Self {
        Self {
            base: description.base(),
            description: description.clone(),
            ..Self::default()
        }
    }

    /// Adds functions, up to `room`.
    fn add(&mut self, mut functions: Vec<(u32, u32)>, room: usize) {
        functions.truncate(room.saturating_sub(self.ranges.len()));
        self.ranges.extend(functions);
        // The largest of several functions at one address comes first and stays.
        self.ranges
            .sort_unstable_by_key(|(start, size)| (*start, u32::MAX - size));
        self.ranges.dedup_by_key(|(start, _)| *start);
        self.ranges.shrink_to_fit();
        self.uncounted = self.ranges.len();
    }

    /// The virtual address of the function at an offset in the file.
    fn find(&self, offset: u64) -> Option<u64> {
        let address = self.description.segments.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.size).then(|| segment.address.checked_add(within))?
        })?;
        let address = u32::try_from(address.checked_sub(self.base)?).ok()?;
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let (start, size) = *self.ranges.get(after.checked_sub(1)?)?;
        (size == 0 || address - start < size).then_some(self.base + u64::from(start))
    }
}
