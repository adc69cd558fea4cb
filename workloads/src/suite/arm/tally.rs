//! Counts committed records, rows and statements of a phase, and the growth of the tables, in
//! addition to the engine's counters.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::engine::load::Moment;

/// Sums over all writers since the start of the phase, updated once per commit.
#[derive(Debug, Default)]
pub struct Tally {
    records: AtomicU64,
    rows: AtomicU64,
    statements: AtomicU64,
    commits: AtomicU64,
    /// Rows in all tables before and after `measure`, with `--verify`.
    counted: Mutex<(Option<u64>, Option<u64>)>,
}

/// A copy of the sums.
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    /// ARM records.
    pub records: u64,
    /// Rows in all tables.
    pub rows: u64,
    /// Statements, COMMIT included, of the transactions that were committed.
    pub statements: u64,
    /// Database transactions.
    pub commits: u64,
}

impl Tally {
    /// Starts a phase.
    pub fn reset(&self) {
        for counter in [&self.records, &self.rows, &self.statements, &self.commits] {
            counter.store(0, Relaxed);
        }
    }

    /// Adds one committed buffer.
    pub fn committed(&self, records: u64, rows: u64, statements: u64) {
        self.records.fetch_add(records, Relaxed);
        self.rows.fetch_add(rows, Relaxed);
        self.statements.fetch_add(statements, Relaxed);
        self.commits.fetch_add(1, Relaxed);
    }

    /// The sums so far.
    pub fn sums(&self) -> Sums {
        Sums {
            records: self.records.load(Relaxed),
            rows: self.rows.load(Relaxed),
            statements: self.statements.load(Relaxed),
            commits: self.commits.load(Relaxed),
        }
    }

    /// Counts the rows of all tables, which scans an index of each.
    pub fn count(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        let rows = connection.rows(
            "SELECT (SELECT COUNT(*) FROM arm_tran) + (SELECT COUNT(*) FROM arm_metric) + (SELECT COUNT(*) FROM arm_ctx)",
        )?;
        let count = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            Moment::Before => counted.0 = count,
            Moment::After => counted.1 = count,
        }
        Ok(())
    }

    /// The growth of the tables over `measure` in rows, with `--verify`.
    pub fn growth(&self) -> Option<u64> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.1?.checked_sub(counted.0?)
    }
}
