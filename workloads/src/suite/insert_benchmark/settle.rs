//! The step between loading and querying: statistics are computed, and InnoDB is told to write its dirty pages back for a while.
//! Its variables are set back in every case: by the session itself, or else by the connection that reads the server at rest.

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

/// Name, and value while settling. In this order; set back in the other one, as the low-water mark must not lie above the limit.
const FORCED: [(&str, &str); 3] = [
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    ("innodb_idle_flush_pct", "100"),
];
/// Rows for which the wait becomes twice as long.
const ROWS_PER_WAIT: f64 = 60e6;
/// The wait is never longer than so many times `--settle-time`.
const LONGEST: f64 = 20.0;

/// What was changed on the server, and how much it wrote.
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
        // Whole after each change: a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dirty pages before and after, and the seconds waited between.
    pub fn told(&self) -> ([Option<u64>; 2], f64) {
        let state = self.lock();
        (state.dirty, state.wait_seconds)
    }

    /// Counts the dirty pages; afterwards, sets back what the session could not.
    pub fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")?;
        let pages = rows.first().and_then(|row| row.get(1)?.as_deref()?.parse().ok());
        let mut state = self.lock();
        state.dirty[moment as usize] = pages;
        if moment == Moment::After {
            set_back(&mut state, |sql| connection.query(sql.as_bytes()).map(drop)).map_err(|error| {
                // The statement is the mend.
                let failure = error.failure();
                let sql = state.restore.as_deref().unwrap_or_default();
                DbError::Fatal(Failure {
                    message: format!(
                        "{}: settle could not undo its changes: run `{sql}`",
                        failure.message
                    ),
                    ..failure.clone()
                })
            })?;
        }
        Ok(())
    }
}

fn set_back(state: &mut State, run: impl FnOnce(&str) -> Result<(), DbError>) -> Result<(), DbError> {
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
    /// Waits for `base_seconds` and a little longer per row.
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
        let seconds = base_seconds * (1.0 + rows as f64 / ROWS_PER_WAIT).min(LONGEST);
        settling.lock().wait_seconds = seconds;
        Ok(Self {
            shared,
            settling,
            wait_ns: (seconds * 1e9) as i64,
            done: false,
        })
    }

    /// Sets the variables that this server has, and keeps the statement that sets them back.
    fn force(&self, client: &mut Client<'_>) -> Result<(), DbError> {
        let names = FORCED.map(|(name, _)| format!("'{name}'")).join(", ");
        let found = client.rows(&format!("SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})"))?;
        let present = |name: &str| -> Option<String> {
            let row = found.iter().find(|row| row[0].as_deref() == Some(name))?;
            row.get(1)?.clone()
        };
        let mut change = Vec::new();
        let mut restore = Vec::new();
        for (name, forced) in FORCED {
            if let Some(value) = present(name) {
                change.push(format!("{name} = {forced}"));
                restore.insert(0, format!("{name} = {value}"));
            }
        }
        if change.is_empty() {
            return Ok(());
        }
        // Kept before the change: also when its answer is lost, it is undone.
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
        self.force(client)?;
        let waited = client.pause_until(monotonic_ns() + self.wait_ns);
        self.done = true;
        let mut state = self.settling.lock();
        // What fails here is done again, and told, when the server is read at rest.
        let undone = set_back(&mut state, |sql| client.query(sql.as_bytes()));
        Ok(if waited && undone.is_ok() {
            Step::Done(0)
        } else {
            Step::Exhausted
        })
    }
}
