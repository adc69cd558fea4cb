//! Reads `/proc/net/softnet_stat`: packets that a CPU dropped, and rounds of receiving that it cut
//! short. Of all network namespaces.

use std::array;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "softnet",
    "received packets that a CPU dropped, and rounds of receiving that it cut short",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("cpu")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

static COLUMNS: &[Column] = columns! {
    counter(One) "dropped",
        "packets dropped: the CPU's queue was full", "/proc/net/softnet_stat field 2", lower, bits(32);
    counter(One) "squeezed",
        "rounds that ended with packets left", "/proc/net/softnet_stat field 3", lower, bits(32);
};

/// Field with the number of the CPU, counted from 0.
pub const CPU: usize = 12;

/// A hexadecimal number.
struct Hex(u32);

impl FromStr for Hex {
    type Err = ParseIntError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        u32::from_str_radix(word, 16).map(Self)
    }
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("net/softnet_stat", MOUNT_PROC)?;
    Ok(Box::new(Files::default().with(file, parse)))
}

/// Parses `/proc/net/softnet_stat` (`softnet_seq_show` in `net/core/net-procfs.c`): a line for each
/// CPU that is online, of hexadecimal numbers; old kernels do not print the number of the CPU.
///
/// ```text
/// 02d62dbc 00000000 0000000e 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
/// ```
///
/// # Errors
/// When there is no line.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let odd = each_line(file, |cursor| {
        let fields: [_; CPU + 1] = array::from_fn(|_| cursor.word());
        let place = cursor.line() - 1;
        let mut hex = |item, word| {
            cursor
                .number::<Hex>(item, word)
                .map(|Hex(value)| u64::from(value))
        };
        if let [Some(_), dropped, squeezed, ..] = fields {
            let [dropped, squeezed] = [dropped, squeezed].map(|word| hex("packets", word?));
            if let Some(cpu) = fields[CPU].map_or(Some(place.into()), |word| hex("CPU", word)) {
                rows.row(&[cpu.to_string().as_bytes()]);
                rows.uint_or_null(dropped);
                rows.uint_or_null(squeezed);
            }
        }
    });
    rows.odd_mut().add(&odd);
    not_empty(rows, before, "CPU")
}
