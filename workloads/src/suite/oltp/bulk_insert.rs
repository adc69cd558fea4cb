//! The script bulk_insert: each thread appends rows to its own table through a buffer of 512 KiB.
//! One event appends one row to the buffer. Most events send nothing; the statement counts are the
//! INSERTs sent.

use std::io::Write;

use anyhow::Result;

use super::sessions;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::external;
use crate::options::Values;
use crate::suite::bulk::Bulk;
use crate::suite::for_each;
use crate::suite::sbtest;
use crate::suite::sbtest::LONGEST_INSERT;
use crate::suite::sbtest::check;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "bulk_insert",
    summary: "sysbench's bulk insert: one table per thread, rows of two integers in INSERTs of 512 KiB",
    operation: "sysbench event (one row appended to the buffer)",
    types: &["bulk_insert"],
    options: &[external::SYSBENCH],
    database: "sbtest",
};

/// The workload `bulk_insert`.
#[derive(Debug)]
pub struct BulkInsert;

impl Workload for BulkInsert {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        for_each(setup, setup.threads, |connection, table| {
            setup.output.line(&format!("Creating table 'sbtest{table}'..."));
            let sql = format!(
                "        CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
                 k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
            );
            connection.query(sql.as_bytes())?;
            Ok(())
        })
    }

    fn preflight(&self, _values: &Values, threads: usize, connection: &mut dyn Connection) -> Result<()> {
        check::tables(connection, DESCRIPTOR.name, threads, check::BULK)?;
        check::empty(connection, DESCRIPTOR.name, threads)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        let rules = [
            (
                "ids start at 1 without gaps",
                "SELECT COALESCE(MAX(id), 0) - COUNT(*) + COALESCE(MIN(id), 1) - 1 FROM sbtest%u",
            ),
            ("k is the id", "SELECT COUNT(*) FROM sbtest%u WHERE k <> id"),
        ];
        let rules = rules.map(|(rule, sql)| (rule.to_owned(), sql.to_owned()));
        check::check(setup, DESCRIPTOR.name, setup.threads, check::BULK, &rules)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        sbtest::cleanup(setup, setup.threads)
    }

    fn load(&self, _values: &Values, _threads: usize, _seed: u64) -> Result<Box<dyn Load>> {
        Ok(sessions(0, |thread, _| {
            Ok(Box::new(BulkSession {
                bulk: Bulk::new(
                    &format!("INSERT INTO sbtest{} VALUES", thread + 1),
                    LONGEST_INSERT,
                ),
                row: Vec::with_capacity(32),
                appended: 0,
            }))
        }))
    }
}

struct BulkSession {
    bulk: Bulk,
    row: Vec<u8>,
    appended: u64,
}

impl Session for BulkSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let id = self.appended + 1;
        self.row.clear();
        // Writing to a Vec cannot fail.
        drop(write!(self.row, "({id},{id})"));
        if let Some(insert) = self.bulk.full(self.row.len()) {
            client.query(insert)?;
            self.bulk.clear();
        }
        // After the statement: an event repeated after an ignored error leaves no gap.
        self.bulk.push(&self.row);
        self.appended = id;
        Ok(Step::Done(1))
    }

    fn finish(&mut self, client: &mut Client<'_>) -> Result<(), DbError> {
        if let Some(insert) = self.bulk.rest() {
            client.query(insert)?;
            self.bulk.clear();
        }
        Ok(())
    }
}
