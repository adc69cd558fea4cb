//! Runs transactions without procedures: every statement is a separate round trip by `--protocol`,
//! about 28 per transaction on average.

mod answer;
mod orders;
mod payment;
mod text;

use super::clock::Timestamp;
use super::inputs::Delivery;
use super::inputs::Kind;
use super::inputs::NewOrder;
use super::inputs::OrderStatus;
use super::inputs::Payment;
use super::inputs::StockLevel;
use super::inputs::Terminal;
use super::random::DISTRICTS;
use crate::driver::DbError;
use crate::driver::Row;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::driver::Value::Bytes;
use crate::driver::Value::Int;
use crate::engine::client::Client;
use answer::Answer;
use text::ALL;
use text::KEYS;
use text::Key;

/// Statements that one connection prepares.
pub const HANDLES: usize = KEYS;

/// One thread's statements.
#[derive(Debug)]
pub struct Statements {
    ids: [StatementId; KEYS],
    strict: bool,
    now: Timestamp,
}

impl Statements {
    /// Prepares all statements.
    pub fn open(client: &mut Client<'_>, strict: bool) -> Result<Self, DbError> {
        let mut ids = [StatementId(0); KEYS];
        for (id, key) in ids.iter_mut().zip(ALL) {
            let (sql, params) = key.definition(strict);
            *id = client.prepare(&sql, params)?;
        }
        Ok(Self {
            ids,
            strict,
            now: Timestamp::default(),
        })
    }

    /// Runs a transaction; true if it was a new order that committed.
    pub fn run(
        &mut self,
        kind: Kind,
        terminal: &mut Terminal,
        client: &mut Client<'_>,
    ) -> Result<bool, DbError> {
        match kind {
            Kind::NewOrder => {
                let inputs = NewOrder::draw(terminal);
                self.new_order(inputs, terminal, client)
            }
            Kind::Payment => self.payment(&Payment::draw(terminal), client).map(|()| false),
            Kind::Delivery => self.delivery(Delivery::draw(terminal), client).map(|()| false),
            Kind::StockLevel => self
                .stock_level(StockLevel::draw(terminal), client)
                .map(|()| false),
            Kind::OrderStatus => self
                .order_status(&OrderStatus::draw(terminal), client)
                .map(|()| false),
        }
    }

    fn execute(&self, client: &mut Client<'_>, key: Key, values: &[Value<'_>]) -> Result<(), DbError> {
        client.execute(self.ids[key as usize], values)
    }

    fn rows(&self, client: &mut Client<'_>, key: Key, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        client.fetch(self.ids[key as usize], values)
    }

    fn commit(&self, client: &mut Client<'_>) -> Result<(), DbError> {
        client.commit(self.ids[Key::Commit as usize])
    }

    fn delivery(&mut self, of: Delivery, client: &mut Client<'_>) -> Result<(), DbError> {
        let w = Int(of.w);
        let now = self.now.digits().to_owned();
        self.execute(client, Key::Start, &[])?;
        for district in 1..=DISTRICTS {
            let d = Int(district);
            let rows = self.rows(client, Key::OldestOrder, &[w, d])?;
            if rows.is_empty() {
                // HammerDB ends the delivery here; TPC-C skips the district.
                if self.strict {
                    continue;
                }
                break;
            }
            let order = Int(Answer::of(rows.first(), Key::OldestOrder).int(0)?);
            self.execute(client, Key::DeleteNewOrder, &[w, d, order])?;
            let rows = self.rows(client, Key::Orderer, &[w, d, order])?;
            let buyer = Int(Answer::of(rows.first(), Key::Orderer).int(0)?);
            self.execute(client, Key::SetCarrier, &[Int(of.carrier), w, d, order])?;
            self.execute(client, Key::SetDelivered, &[Bytes(now.as_bytes()), w, d, order])?;
            let rows = self.rows(client, Key::OrderTotal, &[w, d, order])?;
            let total = Answer::of(rows.first(), Key::OrderTotal).text(0)?;
            self.execute(client, Key::AddBalance, &[Bytes(total.as_bytes()), w, d, buyer])?;
        }
        self.commit(client)
    }

    fn stock_level(&mut self, of: StockLevel, client: &mut Client<'_>) -> Result<(), DbError> {
        let (w, d) = (Int(of.w), Int(of.d));
        self.execute(client, Key::Start, &[])?;
        let rows = self.rows(client, Key::NextNumber, &[w, d])?;
        let next = Answer::of(rows.first(), Key::NextNumber).int(0)?;
        let values = [w, d, Int(next), Int(next - 20), w, Int(of.threshold)];
        self.execute(client, Key::LowStock, &values)?;
        self.commit(client)
    }

    fn order_status(&mut self, of: &OrderStatus, client: &mut Client<'_>) -> Result<(), DbError> {
        let (w, d) = (Int(of.w), Int(of.d));
        self.execute(client, Key::Start, &[])?;
        let c = match &of.customer.name {
            Some(name) => {
                let name = Bytes(name.as_bytes());
                self.execute(client, Key::CountNames, &[w, d, name])?;
                let rows = self.rows(client, Key::AskersByName, &[w, d, name])?;
                Answer::of(chosen(&rows, self.strict), Key::AskersByName).int(3)?
            }
            None => {
                self.execute(client, Key::AskerById, &[w, d, Int(of.customer.c)])?;
                of.customer.c
            }
        };
        let rows = self.rows(client, Key::LastOrder, &[w, d, Int(c)])?;
        // HammerDB's data have customers without an order; HammerDB reads the lines of order 0
        // then.
        let order = match rows.first() {
            Some(row) => Answer::of(Some(row), Key::LastOrder).int(0)?,
            None => 0,
        };
        self.execute(client, Key::Lines, &[w, d, Int(order)])?;
        self.commit(client)
    }
}

/// The customer at ⌈n/2⌉ of n customers with one last name, in the order of their first names
/// (clause 2.5.2.2). HammerDB selects the next one, or the last.
fn chosen(rows: &[Row], strict: bool) -> Option<&Row> {
    let middle = rows.len().div_ceil(2) + usize::from(!strict);
    rows.get(middle.min(rows.len()).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_customer_is_that_of_hammerdb_or_of_the_clause() {
        let rows: Vec<Row> = (1..=5).map(|n| vec![Some(n.to_string())]).collect();
        let pick = |n: usize, strict| chosen(&rows[..n], strict).map(|row| row[0].clone().unwrap());
        let both = |n| (pick(n, false), pick(n, true));
        let row = |n: i32| Some(n.to_string());
        assert_eq!(both(0), (None, None));
        assert_eq!(both(1), (row(1), row(1)));
        assert_eq!(both(2), (row(2), row(1)));
        assert_eq!(both(3), (row(3), row(2)));
        assert_eq!(both(4), (row(3), row(2)));
        assert_eq!(both(5), (row(4), row(3)));
    }
}
