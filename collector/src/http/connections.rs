//! Limits the number of open connections: a full server closes the connection that is idle longest,
//! so that a new client is always served.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Instant;

use tokio::task::AbortHandle;

/// Limit on open connections.
pub const MAX_CONNECTIONS: usize = 64;

/// All open connections by number.
#[derive(Debug, Default)]
pub struct Connections(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last_number: u64,
    open: HashMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    /// True while an authorized request is answered.
    is_busy: bool,
    /// Start of the current idle or busy time.
    since: Instant,
    task: AbortHandle,
}

impl Table {
    /// Adds a connection; returns the one to close for it.
    fn add(&mut self, number: u64, connection: Connection) -> Option<Connection> {
        self.open.insert(number, connection);
        if self.open.len() <= MAX_CONNECTIONS {
            return None;
        }
        let mut per_client: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.open.values() {
            *per_client.entry(connection.client).or_default() += 1;
        }
        let rank = |connection: &Connection| {
            (
                connection.is_busy,
                usize::MAX - per_client[&connection.client],
                connection.since,
            )
        };
        let others = self.open.iter().filter(|(other, _)| **other != number);
        let first = others
            .min_by_key(|(_, connection)| rank(connection))
            .map(|(other, _)| *other);
        self.open.remove(&first?)
    }
}

impl Connections {
    /// The number of the next connection.
    pub fn next_number(&self) -> u64 {
        let mut table = self.lock();
        table.last_number += 1;
        table.last_number
    }

    /// Adds a connection. Above the limit it closes one: an idle one if there is any, of the client
    /// address with the most connections, the one that is idle longest.
    pub fn add(&self, number: u64, client: IpAddr, task: AbortHandle) {
        let connection = Connection {
            client,
            is_busy: false,
            since: Instant::now(),
            task,
        };
        let closed = self.lock().add(number, connection);
        if let Some(closed) = closed {
            closed.task.abort();
        }
    }

    /// Marks a connection as busy or idle.
    pub fn mark(&self, number: u64, is_busy: bool) {
        if let Some(connection) = self.lock().open.get_mut(&number) {
            (connection.is_busy, connection.since) = (is_busy, Instant::now());
        }
    }

    /// Removes a closed connection.
    pub fn remove(&self, number: u64) {
        self.lock().open.remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
