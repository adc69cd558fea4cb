//! The connections that are open: a full server closes one that waits for its client, so that it never keeps the next client waiting.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Instant;

use tokio::task::AbortHandle;

/// Connections that are kept open at the same time.
pub const CONNECTIONS: usize = 64;

/// All open connections by number.
#[derive(Debug, Default)]
pub struct Slots(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    slots: HashMap<u64, Slot>,
}

#[derive(Debug)]
struct Slot {
    client: IpAddr,
    /// A request that may be answered is being answered.
    is_busy: bool,
    /// Since when it waits for its client, or is busy.
    since: Instant,
    task: AbortHandle,
}

impl Open {
    /// Takes up a connection; gives the one that is to end for it.
    fn add(&mut self, number: u64, slot: Slot) -> Option<Slot> {
        self.slots.insert(number, slot);
        if self.slots.len() <= CONNECTIONS {
            return None;
        }
        let mut of_client: HashMap<IpAddr, usize> = HashMap::new();
        for slot in self.slots.values() {
            *of_client.entry(slot.client).or_default() += 1;
        }
        let rank = |slot: &Slot| (slot.is_busy, usize::MAX - of_client[&slot.client], slot.since);
        let others = self.slots.iter().filter(|(other, _)| **other != number);
        let longest = others.min_by_key(|(_, slot)| rank(slot)).map(|(other, _)| *other);
        self.slots.remove(&longest?)
    }
}

impl Slots {
    /// A number for a connection that is about to be served.
    pub fn next(&self) -> u64 {
        let mut open = self.lock();
        open.last += 1;
        open.last
    }

    /// Takes up a connection. If there are too many then, it ends one: of those that wait for their client, if there are any, the one
    /// that has waited longest among the connections of the client address that has most.
    pub fn add(&self, number: u64, client: IpAddr, task: AbortHandle) {
        let slot = Slot {
            client,
            is_busy: false,
            since: Instant::now(),
            task,
        };
        let ended = self.lock().add(number, slot);
        if let Some(ended) = ended {
            ended.task.abort();
        }
    }

    /// Notes that the connection answers a request, or waits for its client again.
    pub fn mark(&self, number: u64, is_busy: bool) {
        if let Some(slot) = self.lock().slots.get_mut(&number) {
            (slot.is_busy, slot.since) = (is_busy, Instant::now());
        }
    }

    /// Forgets a connection that has ended.
    pub fn remove(&self, number: u64) {
        self.lock().slots.remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
