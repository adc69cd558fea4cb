//! Keeps the files of watched processes, threads and groups open between samples.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::ErrorKind;

use crate::prelude::*;

/// The open files of each entity, in the order of the keys.
#[derive(Debug)]
pub(super) struct Entities<K, V>(BTreeMap<K, Entity<V>>);

#[derive(Debug)]
struct Entity<V> {
    /// Whether it was found since the last sample.
    is_found: bool,
    files: V,
}

impl<K, V> Default for Entities<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> Entities<K, V> {
    /// Marks an entity that exists, and opens its files if they are not open; `None` if it exists
    /// no longer.
    pub fn find(
        &mut self,
        key: K,
        open: impl FnOnce(&K) -> Result<V, ProbeError>,
    ) -> Result<Option<&mut V>, ProbeError> {
        let entity = match self.0.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match open(entry.key()) {
                Ok(files) => entry.insert(Entity {
                    is_found: true,
                    files,
                }),
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        entity.is_found = true;
        Ok(Some(&mut entity.files))
    }

    /// Appends the rows of all entities that were found since the last sample, and closes the files
    /// of the others. An entity that is gone when it is read has no row; so has one that cannot be
    /// read, which is counted.
    ///
    /// # Errors
    /// When none can be read.
    pub fn sample(
        &mut self,
        rows: &mut Rows,
        width: usize,
        mut read: impl FnMut(&K, &mut V, &mut Rows) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let mut result = Ok(());
        let mut is_any_read = false;
        self.0.retain(|key, entity| {
            if !std::mem::take(&mut entity.is_found) {
                return false;
            }
            let before = rows.len();
            let Err(error) = read(key, &mut entity.files, rows) else {
                is_any_read = true;
                return true;
            };
            rows.truncate(before, width);
            if !is_gone(&error) {
                rows.odd_mut().line(|| error.to_string());
                result = Err(error);
            }
            false
        });
        if is_any_read { Ok(()) } else { result }
    }
}

/// Whether a process has exited: its file does not exist, or reading it fails.
fn is_gone(error: &ProbeError) -> bool {
    match error {
        ProbeError::Read { source, .. } => {
            source.kind() == ErrorKind::NotFound || source.raw_os_error() == Some(libc::ESRCH)
        }
        _ => false,
    }
}
