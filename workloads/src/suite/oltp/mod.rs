//! Sysbench's SQL scripts, statement by statement (src/lua/ of sysbench 1.0.20), and `lookup` on the
//! same tables. Each tool runs on the data that the other one prepared.

pub mod bulk_insert;
mod insert;
mod random_select;
pub mod scripts;
mod session;

use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::protocol::Protocol;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::options::Values;
use crate::random::Distribution;
use crate::suite::sbtest;
use crate::suite::sbtest::check;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;
use scripts::Group;

/// A script.
#[derive(Debug)]
pub struct Oltp {
    descriptor: Descriptor,
    event: Event,
}

/// The statements of one event of a script.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// Groups of statements between BEGIN and COMMIT, unless `--skip-trx` is on.
    Transaction(&'static [&'static [Group]]),
    /// A group of autocommitted statements.
    Group(Group),
    /// The same with equal probabilities of all ids, as text by default.
    Lookup(Group),
    /// A text INSERT.
    Insert,
    /// SELECT … WHERE k IN (…).
    RandomPoints,
    /// SELECT … WHERE k BETWEEN … OR ….
    RandomRanges,
}

/// A load that only makes sessions.
struct Sessions<F> {
    /// Number of statements that a connection prepares.
    handles: usize,
    open: F,
}

impl<F> Load for Sessions<F>
where
    F: Fn(usize, &mut Client<'_>) -> Result<Box<dyn Session>, DbError> + Sync,
{
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        (self.open)(thread, client)
    }

    fn handles(&self) -> usize {
        self.handles
    }
}

/// A load whose threads use `open` and prepare this number of statements.
fn sessions(
    handles: usize,
    open: impl Fn(usize, &mut Client<'_>) -> Result<Box<dyn Session>, DbError> + Sync + 'static,
) -> Box<dyn Load> {
    Box::new(Sessions { handles, open })
}

impl Oltp {
    /// The number of tables; two scripts use only one.
    fn tables(&self, values: &Values) -> Result<usize> {
        match (self.event, values.count("tables")?) {
            (Event::RandomPoints | Event::RandomRanges, tables) if tables > 1 => {
                bail!(
                    "--tables={tables}: {} uses one table, sbtest1: leave --tables out",
                    self.descriptor.name
                )
            }
            (_, tables) => Ok(tables),
        }
    }

    /// Rows of a table after `prepare`. If the client chooses ids, which could equal those of
    /// `prepare`, it inserts none.
    fn rows(&self, values: &Values) -> Result<i64> {
        match self.event {
            Event::Insert if !values.flag("auto-inc")? => Ok(0),
            _ => values.int("table-size"),
        }
    }

    fn distribution(&self, values: &Values) -> Result<Distribution> {
        match self.event {
            Event::Lookup(_) => Ok(Distribution::uniform()),
            _ => Distribution::from_options(values),
        }
    }
}

impl Workload for Oltp {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn protocol(&self) -> Option<Protocol> {
        matches!(self.event, Event::Lookup(_)).then_some(Protocol::Text)
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        self.tables(setup.values)?;
        let distribution = self.distribution(setup.values)?;
        sbtest::prepare(setup, distribution, self.rows(setup.values)?)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        self.tables(setup.values)?;
        sbtest::warmup(setup)
    }

    fn preflight(&self, values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        let (name, tables) = (self.descriptor.name, self.tables(values)?);
        check::tables(connection, name, tables, check::OLTP)?;
        match self.event {
            // Inserts need no rows.
            Event::Insert => Ok(()),
            _ => check::rows(connection, name, tables, values.int("table-size")?),
        }
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        let values = setup.values;
        let only = !matches!(self.event, Event::Insert);
        let rules = check::oltp_rules(self.rows(values)?, only, values.flag("create-secondary")?);
        let tables = self.tables(values)?;
        check::check(setup, self.descriptor.name, tables, check::OLTP, &rules)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        sbtest::cleanup(setup, self.tables(setup.values)?)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        self.tables(values)?;
        let distribution = self.distribution(values)?;
        match self.event {
            Event::Transaction(groups) => {
                let transaction = !values.flag("skip-trx")?;
                session::load(&groups.concat(), transaction, distribution, values, seed)
            }
            Event::Group(group) | Event::Lookup(group) => {
                session::load(&[group], false, distribution, values, seed)
            }
            Event::Insert => insert::load(distribution, values, threads, seed),
            Event::RandomPoints => random_select::load(false, distribution, values, threads, seed),
            Event::RandomRanges => random_select::load(true, distribution, values, threads, seed),
        }
    }
}
