//! Finds `dispatch_command` in a server's binary: the function that handles one command of the
//! protocol in MySQL and MariaDB.
//!
//! Both export it, under a name that encodes its parameters (Itanium C++ ABI, "External Names").
//! The command is the third argument in MySQL 5.7 and newer, and the first in MariaDB and older
//! MySQL.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;
use object::Object;
use object::ObjectSegment;
use object::ObjectSymbol;

/// Which argument is the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `dispatch_command(enum_server_command, THD *, …)`.
    First,
    /// `dispatch_command(THD *, const COM_DATA *, enum_server_command)`.
    Third,
}

/// The function in one binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Offset in the file, in bytes.
    pub offset: usize,
    /// Which argument is the command.
    pub argument: Argument,
}

/// Finds the function in a binary; `None` if it is not a server, or its function has other
/// parameters.
///
/// # Errors
/// When the file cannot be read or is not an ELF file.
pub fn find(binary: &Path) -> Result<Option<Function>, String> {
    let failed = |error: String| format!("{}: {error}", binary.display());
    let file = File::open(binary).map_err(|error| failed(error.to_string()))?;
    // SAFETY: the kernel refuses writes to a running program (ETXTBSY), and the parser checks what
    // it reads.
    let bytes = unsafe { Mmap::map(&file) }.map_err(|error| failed(error.to_string()))?;
    let elf = object::File::parse(&*bytes).map_err(|error| failed(error.to_string()))?;
    let symbols = elf.dynamic_symbols().chain(elf.symbols());
    let function = symbols
        .filter(|symbol| symbol.is_definition())
        .find_map(|symbol| Some((symbol.address(), argument(symbol.name_bytes().ok()?)?)));
    let Some((address, argument)) = function else {
        return Ok(None);
    };
    let in_file = elf.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let within = address.checked_sub(segment.address())?;
        (within < size).then_some(start + within)
    });
    Ok(in_file.map(|offset| Function {
        offset: offset as usize,
        argument,
    }))
}

/// Which argument is the command in the function of this name; `None` for all other functions.
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

#[cfg(test)]
mod tests {
    use super::*;

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
                "_Z16dispatch_command19enum_server_commandP3THDPcjbb",
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
    fn binary_without_the_function_differs_from_a_file_that_is_not_a_binary() {
        assert_eq!(find(Path::new("/proc/self/exe")), Ok(None));
        let error = find(Path::new("/proc/self/status")).unwrap_err();
        assert!(error.starts_with("/proc/self/status: "), "{error}");
    }
}
