//! The step `settle` between loading and querying: computes statistics and makes InnoDB write its
//! dirty pages back for some time. The changed variables are always restored: by the session, or
//! else by the connection that reads the server after the run.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use loadprint_recording::clock::monotonic_ns;

use super::shared::SETTLE;
use super::shared::Shared;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Failure;
use crate::engine::client::Client;
use crate::engine::load::Moment;
use crate::engine::load::Session;
use crate::engine::load::Step;

/// Variables and their values during the step. Set in this order and restored in reverse, because
/// the low-water mark must not exceed the limit.
const VARIABLES: [(&str, &str); 3] = [
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    ("innodb_idle_flush_pct", "100"),
];
/// Rows for which the wait doubles.
const ROWS_PER_WAIT: f64 = 60e6;
/// The longest wait as a multiple of `--settle-time`.
const MAX_WAITS: f64 = 20.0;

/// The changes to the server and the dirty pages before and after.
#[derive(Debug, Default)]
pub struct Settling(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    restore: Option<String>,
    dirty: [Option<u64>; 2],
    wait_seconds: f64,
}

impl Settling {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state consistent: a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dirty pages before and after, and the seconds of the wait.
    pub fn results(&self) -> ([Option<u64>; 2], f64) {
        let state = self.lock();
        (state.dirty, state.wait_seconds)
    }

    /// Counts the dirty pages. After the run, restores variables that the session could not
    /// restore.
    pub fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")?;
        let pages = rows.first().and_then(|row| row.get(1)?.as_deref()?.parse().ok());
        let mut state = self.lock();
        state.dirty[moment as usize] = pages;
        if moment == Moment::After {
            restore(&mut state, |sql| connection.query(sql.as_bytes()).map(drop)).map_err(|error| {
                let failure = error.failure();
                let sql = state.restore.as_deref().unwrap_or_default();
                DbError::Fatal(Failure {
                    message: format!(
                        "{}: settle cannot restore the server's variables: run `{sql}`",
                        failure.message
                    ),
                    ..failure.clone()
                })
            })?;
        }
        Ok(())
    }
}

fn restore(state: &mut State, run: impl FnOnce(&str) -> Result<(), DbError>) -> Result<(), DbError> {
    if let Some(sql) = state.restore.as_deref() {
        run(sql)?;
        state.restore = None;
    }
    Ok(())
}

/// The session.
pub struct Settler {
    shared: Arc<Shared>,
    settling: Arc<Settling>,
    wait_ns: i64,
    done: bool,
}

impl Settler {
    /// Waits for `base_seconds`, longer for more rows.
    pub fn open(
        shared: Arc<Shared>,
        settling: Arc<Settling>,
        base_seconds: f64,
        client: &mut Client<'_>,
    ) -> Result<Self, DbError> {
        let mut rows = 0;
        for number in 0..shared.tables.len() {
            shared.read_span(number, client)?;
            let table = shared.table(number);
            rows += table.highest.load(Relaxed) - table.lowest.load(Relaxed);
        }
        let seconds = base_seconds * (1.0 + rows as f64 / ROWS_PER_WAIT).min(MAX_WAITS);
        settling.lock().wait_seconds = seconds;
        Ok(Self {
            shared,
            settling,
            wait_ns: (seconds * 1e9) as i64,
            done: false,
        })
    }

    /// Sets the variables that this server has, and stores the statement that restores them.
    fn set_variables(&self, client: &mut Client<'_>) -> Result<(), DbError> {
        let names = VARIABLES.map(|(name, _)| format!("'{name}'")).join(", ");
        let variables = client.rows(&format!("SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})"))?;
        let current = |name: &str| -> Option<String> {
            let row = variables.iter().find(|row| row[0].as_deref() == Some(name))?;
            row.get(1)?.clone()
        };
        let mut change = Vec::new();
        let mut restore = Vec::new();
        for (name, settling) in VARIABLES {
            if let Some(value) = current(name) {
                change.push(format!("{name} = {settling}"));
                restore.insert(0, format!("{name} = {value}"));
            }
        }
        if change.is_empty() {
            return Ok(());
        }
        // Stored before the change, so that a change whose reply is lost is undone too.
        self.settling.lock().restore = Some(format!("SET GLOBAL {}", restore.join(", ")));
        let changed = client.query(format!("SET GLOBAL {}", change.join(", ")).as_bytes());
        if changed.as_ref().is_err_and(|error| !error.connection_lost()) {
            self.settling.lock().restore = None;
        }
        changed
    }
}

impl Session for Settler {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        if self.done {
            return Ok(Step::Exhausted);
        }
        client.start(SETTLE);
        for table in &self.shared.tables {
            client.query(format!("ANALYZE TABLE {}", table.name).as_bytes())?;
        }
        self.set_variables(client)?;
        let waited = client.pause_until(monotonic_ns() + self.wait_ns);
        self.done = true;
        let mut state = self.settling.lock();
        // After an error here, `at_rest` tries again and reports the error.
        let restored = restore(&mut state, |sql| client.query(sql.as_bytes()));
        Ok(if waited && restored.is_ok() {
            Step::Done(0)
        } else {
            Step::Exhausted
        })
    }
}
