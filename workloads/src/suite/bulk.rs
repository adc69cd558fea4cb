//! Builds multi-row INSERTs of at most a number of bytes.

/// An INSERT that grows row by row.
#[derive(Debug, Default)]
pub struct Bulk {
    text: Vec<u8>,
    head: usize,
    rows: u64,
    longest: usize,
}

impl Bulk {
    /// For statements of at most `longest` bytes, except for a single row; `head` is the statement
    /// up to and including VALUES.
    pub fn new(head: &str, longest: usize) -> Self {
        let mut bulk = Self {
            longest,
            ..Self::default()
        };
        bulk.restart(head);
        bulk
    }

    /// Starts a statement with another head.
    pub fn restart(&mut self, head: &str) {
        self.text.clear();
        self.text.extend_from_slice(head.as_bytes());
        (self.head, self.rows) = (head.len(), 0);
    }

    /// The statement, if a row of this length no longer fits; send it and call [`Bulk::clear`]
    /// first.
    pub fn full(&self, row: usize) -> Option<&[u8]> {
        self.rest().filter(|text| text.len() + 1 + row > self.longest)
    }

    /// The statement, if it has rows.
    pub fn rest(&self) -> Option<&[u8]> {
        (self.rows > 0).then_some(self.text.as_slice())
    }

    /// Adds a row, with its parentheses.
    pub fn push(&mut self, row: &[u8]) {
        if self.rows > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(row);
        self.rows += 1;
    }

    /// Starts the next statement.
    pub fn clear(&mut self) {
        self.text.truncate(self.head);
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_filled_up_to_its_last_byte() {
        let mut bulk = Bulk::new("INSERT INTO t VALUES", 100);
        assert_eq!(bulk.rest(), None);
        bulk.push(b"(1)");
        bulk.push(b"(2)");
        assert_eq!(bulk.rest(), Some(b"INSERT INTO t VALUES(1),(2)".as_slice()));
        let room = 100 - 27 - 1;
        assert!(bulk.full(room).is_none());
        assert!(bulk.full(room + 1).is_some());
        bulk.clear();
        assert_eq!(bulk.rest(), None);
        bulk.push(b"(3)");
        assert_eq!(bulk.rest(), Some(b"INSERT INTO t VALUES(3)".as_slice()));
    }
}
