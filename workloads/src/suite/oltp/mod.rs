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
use crate::driver::protocol::Mode;
use crate::driver::protocol::Protocol;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::options::Values;
use crate::random::Distribution;
use crate::suite::sbtest;
use crate::suite::sbtest::Tables;
use crate::suite::sbtest::check;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;
use scripts::Group;
use scripts::Statement;
use scripts::Statements;
use session::Script;

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
    Lookup(&'static [Statement]),
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

    fn handles(&self, mode: &Mode) -> usize {
        mode.handles(self.handles)
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
    /// The options of the tables; two scripts use only one.
    fn tables(&self, values: &Values) -> Result<Tables> {
        let options: Tables = values.read()?;
        let tables = options.tables;
        if matches!(self.event, Event::RandomPoints | Event::RandomRanges) && tables > 1 {
            bail!(
                "--tables={tables}: {} uses one table, sbtest1: leave --tables out",
                self.descriptor.name
            );
        }
        Ok(options)
    }

    /// Rows of a table after `prepare`. If the client chooses ids, which could equal those of
    /// `prepare`, it inserts none.
    fn rows(&self, options: &Tables) -> i64 {
        match self.event {
            Event::Insert if !options.auto_inc => 0,
            _ => options.table_size,
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
        let options = self.tables(setup.values)?;
        let distribution = self.distribution(setup.values)?;
        sbtest::prepare(setup, &options, distribution, self.rows(&options))
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        sbtest::warmup(setup, &self.tables(setup.values)?)
    }

    fn preflight(&self, values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        let (name, options) = (self.descriptor.name, self.tables(values)?);
        check::tables(connection, name, options.tables, check::OLTP)?;
        match self.event {
            // Inserts need no rows.
            Event::Insert => Ok(()),
            _ => check::rows(connection, name, options.tables, options.table_size),
        }
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        let options = self.tables(setup.values)?;
        let only = !matches!(self.event, Event::Insert);
        let rules = check::oltp_rules(self.rows(&options), only, options.create_secondary);
        check::check(setup, self.descriptor.name, options.tables, check::OLTP, &rules)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        sbtest::cleanup(setup, self.tables(setup.values)?.tables)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        let options = self.tables(values)?;
        let distribution = self.distribution(values)?;
        let keys = distribution.over(1, options.table_size);
        let script = match self.event {
            Event::Transaction(groups) => {
                let given: Statements = values.read()?;
                Script {
                    groups: given.used(&groups.concat()),
                    transaction: !given.skip_trx,
                    reach: given.range_size - 1,
                }
            }
            Event::Group(group) => Script::autocommitted(values.read::<Statements>()?.used(&[group])),
            Event::Lookup(statements) => Script::autocommitted(vec![(1, statements)]),
            Event::Insert => return Ok(insert::load(keys, &options, threads, seed)),
            Event::RandomPoints => return random_select::load(false, distribution, values, threads, seed),
            Event::RandomRanges => return random_select::load(true, distribution, values, threads, seed),
        };
        Ok(session::load(script, options.tables, keys, seed))
    }
}
