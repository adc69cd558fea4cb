//! The workload `lookup`: one SELECT by primary key on sysbench's tables, as a text built for each
//! call, like a simple client program. For sweeps over connections and protocols.

use anyhow::Result;

use crate::driver::Connection;
use crate::driver::protocol::Protocol;
use crate::engine::load::Load;
use crate::options::Values;
use crate::random::Distribution;
use crate::suite::oltp::session::Groups;
use crate::suite::oltp::statements::Group;
use crate::suite::oltp::statements::Param;
use crate::suite::oltp::statements::Repeat;
use crate::suite::oltp::statements::Statement;
use crate::suite::sbtest::TABLES;
use crate::suite::sbtest::check;
use crate::suite::sbtest::preflight;
use crate::suite::sbtest::schema;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "lookup",
    summary: "SELECT k by primary key with uniform table and id, as text unless --protocol is given",
    operation: "lookup (one SELECT by primary key)",
    types: &["lookup"],
    options: &[TABLES],
    database: "sbtest",
};

const LOOKUP: &[Group] = &[Group {
    repeat: Repeat::Once,
    statements: &[Statement {
        sql: "SELECT k FROM sbtest%u WHERE id = ?",
        params: &[Param::Id],
    }],
}];

/// The workload `lookup`.
#[derive(Debug)]
pub struct Lookup;

impl Workload for Lookup {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn protocol(&self) -> Option<Protocol> {
        Some(Protocol::Text)
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        schema::prepare(setup, Distribution::uniform(), setup.values.int("table-size")?)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::warmup(setup)
    }

    fn preflight(&self, values: &Values, _threads: usize, connection: &mut dyn Connection) -> Result<()> {
        let (tables, rows) = (values.count("tables")?, values.int("table-size")?);
        preflight::tables(connection, DESCRIPTOR.name, tables, preflight::OLTP)?;
        preflight::rows(connection, DESCRIPTOR.name, tables, rows)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        let values = setup.values;
        let (tables, rows) = (values.count("tables")?, values.int("table-size")?);
        let rules = check::oltp_rules(rows, true, values.flag("create-secondary")?);
        check::check(setup, DESCRIPTOR.name, tables, preflight::OLTP, &rules)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        schema::cleanup(setup, setup.values.count("tables")?)
    }

    fn load(&self, values: &Values, _threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        Ok(Box::new(Groups::new(
            LOOKUP,
            false,
            Distribution::uniform(),
            values,
            seed,
        )?))
    }
}
