//! Sysbench's SQL scripts, statement by statement (src/lua/ of sysbench 1.0.20). Each tool runs on
//! the data that the other one prepared.

pub mod bulk_insert;
mod insert;
mod options;
mod random_select;
pub mod scripts;
pub mod session;
pub mod statements;

use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;
use crate::engine::load::Load;
use crate::options::Values;
use crate::random::Distribution;
use crate::suite::sbtest::check;
use crate::suite::sbtest::preflight;
use crate::suite::sbtest::schema;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;
use insert::Inserts;
use random_select::RandomSelect;
use session::Groups;
use statements::Group;

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
    Transaction(&'static [Group]),
    /// Groups of autocommitted statements.
    Groups(&'static [Group]),
    /// A text INSERT.
    Insert,
    /// SELECT … WHERE k IN (…).
    RandomPoints,
    /// SELECT … WHERE k BETWEEN … OR ….
    RandomRanges,
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

    /// True if the client chooses ids, which could equal those of `prepare`: then `prepare` inserts
    /// no rows.
    fn starts_empty(&self, values: &Values) -> Result<bool> {
        Ok(matches!(self.event, Event::Insert) && !values.flag("auto-inc")?)
    }

    fn rows(&self, values: &Values) -> Result<i64> {
        if self.starts_empty(values)? {
            return Ok(0);
        }
        values.int("table-size")
    }
}

impl Workload for Oltp {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        self.tables(setup.values)?;
        let distribution = Distribution::from_options(setup.values)?;
        schema::prepare(setup, distribution, self.rows(setup.values)?)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        self.tables(setup.values)?;
        schema::warmup(setup)
    }

    fn preflight(&self, values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        let (name, tables) = (self.descriptor.name, self.tables(values)?);
        preflight::tables(connection, name, tables, preflight::OLTP)?;
        match self.event {
            // Inserts need no rows.
            Event::Insert => Ok(()),
            _ => preflight::rows(connection, name, tables, values.int("table-size")?),
        }
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        let values = setup.values;
        let only = !matches!(self.event, Event::Insert);
        let rules = check::oltp_rules(self.rows(values)?, only, values.flag("create-secondary")?);
        let tables = self.tables(values)?;
        check::check(setup, self.descriptor.name, tables, preflight::OLTP, &rules)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::cleanup(setup, self.tables(setup.values)?)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        self.tables(values)?;
        let distribution = Distribution::from_options(values)?;
        Ok(match self.event {
            Event::Transaction(groups) => {
                let transaction = !values.flag("skip-trx")?;
                Box::new(Groups::new(groups, transaction, distribution, values, seed)?)
            }
            Event::Groups(groups) => Box::new(Groups::new(groups, false, distribution, values, seed)?),
            Event::Insert => Box::new(Inserts::new(distribution, values, threads, seed)?),
            Event::RandomPoints => Box::new(RandomSelect::points(distribution, values, threads, seed)?),
            Event::RandomRanges => Box::new(RandomSelect::ranges(distribution, values, threads, seed)?),
        })
    }
}
