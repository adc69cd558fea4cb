//! The names of signals, as kill(1) has them.

use rustix::process::Signal;

const NAMES: &[(&str, Signal)] = &[
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("SYS", Signal::SYS),
];

/// The name of a signal number, without `SIG`; the number if this table has no name for it.
pub fn name(number: i32) -> String {
    match NAMES.iter().find(|(_, signal)| signal.as_raw() == number) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}
