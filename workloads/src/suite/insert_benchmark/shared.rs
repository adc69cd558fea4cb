//! The state that all connections of a step share: tables, pairs, and the rows inserted and deleted
//! so far.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::pair::Pair;
use super::step::Step;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::random::Rng;

/// Index of a transaction type in the descriptor.
pub const INSERT: usize = 0;
/// As above.
pub const DELETE: usize = 1;
/// As above.
pub const RANGE_QUERY: usize = 2;
/// As above.
pub const POINT_QUERY: usize = 3;
/// As above.
pub const CREATE_INDEX: usize = 4;
/// As above.
pub const SETTLE: usize = 5;

/// Separates the random streams of this suite from those of threads and other suites.
const STREAMS: u64 = 1 << 40;

/// A table, with the range of its ids that this process maintains.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Start of the next DELETE: no row has a smaller id.
    pub lowest: AtomicI64,
    /// The largest id, without the gaps that failed statements leave.
    pub highest: AtomicI64,
}

/// One step with its options.
#[derive(Debug)]
pub struct Shared {
    /// The step.
    pub step: Step,
    /// `--threads`.
    pub clients: usize,
    /// One per client, or one for all.
    pub tables: Vec<Table>,
    /// One per client.
    pub pairs: Vec<Pair>,
    /// Rows that one client inserts, in a step that ends after them.
    pub rows: Option<u64>,
    /// Counts the phases of the run.
    pub phase: AtomicU64,
    /// Rows inserted since the phase started.
    pub inserted: AtomicU64,
    /// Rows deleted since the phase started.
    pub deleted: AtomicU64,
    /// The master seed.
    pub seed: u64,
}

impl Shared {
    /// For a step that runs on these tables.
    pub fn new(step: Step, clients: usize, tables: Vec<String>, rows: Option<u64>, seed: u64) -> Self {
        let table = |name| Table {
            name,
            lowest: AtomicI64::new(0),
            highest: AtomicI64::new(0),
        };
        Self {
            step,
            clients,
            tables: tables.into_iter().map(table).collect(),
            pairs: (0..clients).map(|_| Pair::default()).collect(),
            rows,
            phase: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            seed,
        }
    }

    /// The table of a client.
    pub fn table(&self, client: usize) -> &Table {
        &self.tables[client % self.tables.len()]
    }

    /// The random stream of one connection in this step.
    pub fn rng(&self, client: usize, connection: usize) -> Rng {
        let place = (client as u64) << 2 | connection as u64;
        Rng::new(self.seed, STREAMS + (self.step.stream() << 16) + place)
    }

    /// Reads the range of a table's ids, before the measurement.
    pub fn read_span(&self, client_number: usize, client: &mut Client<'_>) -> Result<(), DbError> {
        let table = self.table(client_number);
        let rows = client.rows(&format!(
            "SELECT MIN(transactionid), MAX(transactionid) FROM {}",
            table.name
        ))?;
        let cell = |column: usize| -> Option<i64> { rows.first()?.get(column)?.as_deref()?.parse().ok() };
        table.lowest.store(cell(0).unwrap_or(0), Relaxed);
        table.highest.store(cell(1).unwrap_or(0), Relaxed);
        Ok(())
    }
}
