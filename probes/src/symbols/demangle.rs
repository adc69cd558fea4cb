//! Demangles the names of symbols, up to a length: a name of 300 characters can stand for gigabytes.

use std::fmt;
use std::fmt::Write;

use cpp_demangle::BorrowedSymbol;
use cpp_demangle::DemangleOptions;

use super::MAX_NAME;
use super::boundary;

/// The name of a symbol in its language, cut to [`MAX_NAME`] bytes; names of other languages than
/// C++ and Rust stay unchanged.
pub fn demangle(mangled: &[u8]) -> String {
    let mut name = Limited(String::new());
    let text = String::from_utf8_lossy(mangled);
    let written = if let Ok(symbol) = rustc_demangle::try_demangle(&text) {
        write!(name, "{symbol:#}")
    } else if let Ok((symbol, [])) = BorrowedSymbol::with_tail(mangled) {
        symbol.structured_demangle(&mut name, &DemangleOptions::default())
    } else {
        name.write_str(&text)
    };
    // An error at the limit leaves the beginning of the name; another one may leave nothing.
    if written.is_err() && name.0.is_empty() {
        name.0 = text.into_owned();
        name.0.truncate(boundary(&name.0, MAX_NAME));
    }
    name.0
}

/// Text up to [`MAX_NAME`] bytes; writing more is an error.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_NAME - self.0.len();
        let fits = boundary(text, room);
        self.0.push_str(&text[..fits]);
        if fits == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_their_language() {
        for (mangled, expected) in [
            (
                "_ZN4core9panicking9panic_fmt17h5f1a6fd39197ad62E",
                "core::panicking::panic_fmt",
            ),
            ("_ZN3THD11cleanup_auxEv", "THD::cleanup_aux()"),
            ("_ZL3runPKcz.cold", "run(char const*, ...) [clone .cold]"),
            ("main.run", "main.run"),
            ("_Znot", "_Znot"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled.as_bytes()), expected);
        }
        assert_eq!(demangle(b"\xff_"), "\u{fffd}_");
    }

    /// Each type is a function of the previous one, twice: 500 characters stand for 2^40 words.
    #[test]
    fn name_that_expands_without_end_is_cut() {
        let sequence = |number: u32| {
            let digit = |digit| char::from_digit(digit, 36).unwrap().to_ascii_uppercase();
            let tens = (number >= 36).then(|| digit(number / 36));
            tens.into_iter().chain([digit(number % 36)]).collect::<String>()
        };
        let mut hostile = "_Z1fPFvvE".to_owned();
        for level in 0..40 {
            let previous = sequence(2 * level);
            hostile += &format!("PFvS{previous}_S{previous}_E");
        }
        for name in [hostile, "x".repeat(1 << 20)] {
            assert_eq!(demangle(name.as_bytes()).len(), MAX_NAME);
        }
    }
}
