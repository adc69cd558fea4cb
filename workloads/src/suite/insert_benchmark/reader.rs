//! The session that queries without pauses: by one of the three secondary indexes, or by primary
//! key.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::rows::CASH_REGISTERS;
use super::rows::PRICES;
use super::rows::PRODUCTS;
use super::shared::POINT_QUERY;
use super::shared::RANGE_QUERY;
use super::shared::Shared;
use super::step::Queries;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::random::Rng;

/// Rows of a query: its LIMIT or its number of ids.
const ROWS: usize = 10;

/// The text of each query and the number of values of its parameter, from 0 on.
fn range_queries(table: &str) -> [(String, i64); 3] {
    let query = |columns: &str, index: &str, first: &str| {
        format!(
            "SELECT {columns} FROM {table} FORCE INDEX ({table}_{index}) WHERE {first} ? ORDER BY {columns} LIMIT {ROWS}"
        )
    };
    [
        (
            query("productid, customerid, price", "marketsegment", "productid >="),
            PRODUCTS,
        ),
        (
            query(
                "cashregisterid, customerid, price",
                "registersegment",
                "cashregisterid >",
            ),
            CASH_REGISTERS,
        ),
        (query("price, dateandtime, customerid", "pdc", "price >="), PRICES),
    ]
}

/// The session.
pub struct Reader {
    shared: Arc<Shared>,
    number: usize,
    rng: Rng,
    query: Query,
}

enum Query {
    Range(Vec<(StatementId, i64)>),
    Point(StatementId),
}

impl Reader {
    /// Prepares the queries.
    pub fn open(
        shared: Arc<Shared>,
        number: usize,
        queries: Queries,
        client: &mut Client<'_>,
    ) -> Result<Self, DbError> {
        shared.read_span(number, client)?;
        let table = &shared.table(number).name;
        let query = match queries {
            Queries::Range => {
                let mut statements = Vec::new();
                for (sql, values) in range_queries(table) {
                    statements.push((client.prepare(&sql, &[ParamType::Int])?, values));
                }
                Query::Range(statements)
            }
            Queries::Point => {
                let ids = ["?"; ROWS].join(", ");
                let sql = format!(
                    "SELECT transactionid, productid, data FROM {table} WHERE transactionid IN ({ids})"
                );
                Query::Point(client.prepare(&sql, &[ParamType::BigInt; ROWS])?)
            }
        };
        Ok(Self {
            rng: shared.rng(number, 2),
            shared,
            number,
            query,
        })
    }
}

impl Session for Reader {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        match &self.query {
            Query::Range(statements) => {
                client.start(RANGE_QUERY);
                let (statement, values) = statements[self.rng.uniform(0, 2) as usize];
                client.execute(statement, &[Value::Int(self.rng.uniform(0, values - 1))])?;
            }
            Query::Point(statement) => {
                client.start(POINT_QUERY);
                let table = self.shared.table(self.number);
                let lowest = table.lowest.load(Relaxed);
                let highest = table.highest.load(Relaxed).max(lowest);
                let ids = [(); ROWS].map(|()| Value::Int(self.rng.uniform(lowest, highest)));
                client.execute(*statement, &ids)?;
            }
        }
        Ok(Step::Done(1))
    }
}
