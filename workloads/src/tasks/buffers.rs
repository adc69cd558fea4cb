//! Buffers that the tasks of a thread lend each other: a connection that waits holds none.

use std::cell::RefCell;

/// More are not kept: tasks that were suspended with a buffer in hand leave no pile of them.
const KEPT: usize = 4;
/// Larger ones are not kept.
const LARGEST: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Buffers(RefCell<Vec<Vec<u8>>>);

impl Buffers {
    pub fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    pub fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT && buffer.capacity() <= LARGEST {
            kept.push(buffer);
        }
    }
}
