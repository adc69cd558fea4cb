//! Computes the sizes of a statement and its response in the protocol, as the server counts them in
//! `Bytes_received` and `Bytes_sent`.
//!
//! The formats are in the chapter "Client/Server Protocol" of MySQL's source documentation:
//! COM_QUERY, text result sets, OK, EOF and ERR packets. With protocol compression the server
//! counts compressed bytes, and these sizes are wrong.

use std::ffi::c_ulong;

/// Length and number of a packet.
const HEADER: u64 = 4;
/// The length of the fixed fields, character set, length, type, flags, decimals, filler.
const FIXED_FIELDS: u64 = 13;
const DEPRECATE_EOF: c_ulong = 1 << 24;
const QUERY_ATTRIBUTES: c_ulong = 1 << 27;

/// The capabilities that both sides of a connection have.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    capabilities: c_ulong,
}

impl Sizes {
    /// Sizes for the capabilities that client and server have negotiated.
    pub fn new(capabilities: c_ulong) -> Self {
        Self { capabilities }
    }

    fn has(self, capability: c_ulong) -> bool {
        self.capabilities & capability != 0
    }

    /// COM_QUERY: a command byte, the counts of attributes and of their sets, the text.
    pub fn query(self, sql: &str) -> u64 {
        let attributes = if self.has(QUERY_ATTRIBUTES) { 2 } else { 0 };
        HEADER + 1 + attributes + sql.len() as u64
    }

    /// The packets of a result set before its rows; `names` are the lengths of the six names of
    /// each column.
    pub fn result(self, columns: impl Iterator<Item = [u64; 6]>) -> u64 {
        let mut count = 0;
        let mut definitions = 0;
        for names in columns {
            count += 1;
            definitions += HEADER + FIXED_FIELDS + names.into_iter().map(string).sum::<u64>();
        }
        let end = if self.has(DEPRECATE_EOF) { 0 } else { self.end() };
        HEADER + length(count) + definitions + end
    }

    /// The packet after the rows; without DEPRECATE_EOF also the one before them.
    pub fn end(self) -> u64 {
        if self.has(DEPRECATE_EOF) {
            self.ok()
        } else {
            HEADER + 5
        }
    }

    /// A row, by the lengths of its cells.
    pub fn row(self, cells: impl Iterator<Item = Option<u64>>) -> u64 {
        HEADER + cells.map(|cell| cell.map_or(1, string)).sum::<u64>()
    }

    /// An OK packet without information: its header byte, two numbers, status, warnings.
    pub fn ok(self) -> u64 {
        HEADER + 7
    }

    /// An ERR packet: its header byte, the number, the SQL state after a `#`, the message.
    pub fn error(self, message: &str) -> u64 {
        HEADER + 9 + message.len() as u64
    }
}

fn length(number: u64) -> u64 {
    match number {
        0..251 => 1,
        251..0x1_0000 => 3,
        0x1_0000..0x100_0000 => 4,
        _ => 9,
    }
}

fn string(bytes: u64) -> u64 {
    length(bytes) + bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `select 1` of MySQL's protocol documentation, which prints the packets byte by byte.
    #[test]
    fn documented_result_set_has_the_computed_size() {
        let sizes = Sizes::new(0);
        assert_eq!(sizes.query("select 1"), 4 + 9);
        let names = [3, 0, 0, 0, 1, 0];
        // 01 00 00 01 01 | 17 00 00 02 … | 05 00 00 03 … | 02 00 00 04 01 31 | 05 00 00 05 …
        assert_eq!(sizes.result([names].into_iter()), 5 + (4 + 0x17) + 9);
        assert_eq!((sizes.row([Some(1)].into_iter()), sizes.end()), (6, 9));
    }
}
