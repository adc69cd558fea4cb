//! The transaction new order, statement by statement.

use super::Statements;
use super::answer::Answer;
use super::text::Key;
use crate::driver::DbError;
use crate::driver::Value::Bytes;
use crate::driver::Value::Int;
use crate::engine::client::Client;
use crate::suite::tproc_c::call::Money;
use crate::suite::tproc_c::inputs::NewOrder;
use crate::suite::tproc_c::inputs::Terminal;
use crate::suite::tproc_c::random;

/// Discount and taxes of the price of a line, in ten-thousandths.
#[derive(Debug, Clone, Copy)]
struct Rates {
    discount: i64,
    w_tax: i64,
    d_tax: i64,
}

/// One order line.
#[derive(Debug, Clone, Copy)]
struct Line {
    order: i64,
    number: i64,
    item: i64,
    supplier: i64,
    quantity: i64,
}

impl Statements {
    /// True if it committed; the last item of one order in a hundred does not exist.
    pub(super) fn new_order(
        &mut self,
        of: NewOrder,
        terminal: &mut Terminal,
        client: &mut Client<'_>,
    ) -> Result<bool, DbError> {
        let (w, d, c) = (Int(of.w), Int(of.d), Int(of.c));
        if self.strict {
            self.execute(client, Key::Start, &[])?;
        }
        let buyers = self.rows(client, Key::Buyer, &[w, w, d, c])?;
        let buyer = Answer::of(buyers.first(), Key::Buyer);
        if !self.strict {
            self.execute(client, Key::Start, &[])?;
        }
        let rows = self.rows(client, Key::NextOrder, &[w, d])?;
        let district = Answer::of(rows.first(), Key::NextOrder);
        let order = district.int(0)?;
        self.execute(client, Key::CountOrder, &[w, d])?;
        let rates = Rates {
            discount: buyer.scaled(0, 4)?,
            w_tax: buyer.scaled(3, 4)?,
            d_tax: district.scaled(1, 4)?,
        };
        let unused = terminal.rng.uniform(1, if self.strict { 100 } else { 99 }) == 1;
        let mut all_local = true;
        for number in 1..=of.lines {
            let mut item = random::item(&mut terminal.rng, self.strict);
            if unused && number == of.lines {
                item = random::NO_ITEM;
            }
            let mut supplier = of.w;
            if terminal.percent(1) {
                supplier = random::other_warehouse(&mut terminal.rng, of.w, terminal.warehouses);
                // HammerDB marks the order as remote even with one warehouse.
                all_local &= self.strict && supplier == of.w;
            }
            let line = Line {
                order,
                number,
                item,
                supplier,
                quantity: terminal.rng.uniform(1, 10),
            };
            if !self.line(of, line, rates, client)? {
                self.execute(client, Key::Rollback, &[])?;
                client.rolled_back();
                return Ok(false);
            }
        }
        let now = self.now.digits().to_owned();
        let now = Bytes(now.as_bytes());
        let values = [Int(order), d, w, c, now, Int(of.lines), Int(i64::from(all_local))];
        self.execute(client, Key::InsertOrder, &values)?;
        self.execute(client, Key::InsertNewOrder, &[Int(order), d, w])?;
        self.commit(client)?;
        Ok(true)
    }

    /// False if the item does not exist.
    fn line(&self, of: NewOrder, line: Line, rates: Rates, client: &mut Client<'_>) -> Result<bool, DbError> {
        let items = self.rows(client, Key::Item, &[Int(line.item)])?;
        if items.is_empty() {
            return Ok(false);
        }
        let price = Answer::of(items.first(), Key::Item).scaled(0, 2)?;
        let (item, supplier) = (Int(line.item), Int(line.supplier));
        let stocks = self.rows(client, Key::Stock, &[supplier, item])?;
        let stock = Answer::of(stocks.first(), Key::Stock);
        let left = restocked(stock.int(0)?, line.quantity, self.strict);
        if self.strict {
            let remote = i64::from(line.supplier != of.w);
            let values = [Int(left), Int(line.quantity), Int(remote), supplier, item];
            self.execute(client, Key::TakeStock, &values)?;
        } else {
            self.execute(client, Key::TakeStock, &[Int(left), supplier, item])?;
        }
        let amount = Money(amount(line.quantity, price, rates, self.strict)).to_string();
        // The ten texts of the stock, one for each district, follow quantity and s_data.
        let about = stock.text(usize::try_from(of.d).unwrap_or(0) + 1)?;
        let values = [
            Int(line.order),
            Int(of.d),
            Int(of.w),
            Int(line.number),
            item,
            supplier,
            Int(line.quantity),
            Bytes(amount.as_bytes()),
            Bytes(about.as_bytes()),
        ];
        self.execute(client, Key::InsertLine, &values)?;
        Ok(true)
    }
}

/// Adds 91 if fewer than ten remain (clause 2.4.2.2); in HammerDB, if none remains.
fn restocked(quantity: i64, taken: i64, strict: bool) -> i64 {
    let enough = if strict {
        quantity >= taken + 10
    } else {
        quantity > taken
    };
    quantity - taken + if enough { 0 } else { 91 }
}

/// Quantity × price in hundredths; HammerDB adds taxes and subtracts the discount.
fn amount(quantity: i64, price: i64, rates: Rates, strict: bool) -> i64 {
    let plain = quantity * price;
    if strict {
        return plain;
    }
    let scaled = plain * (10_000 + rates.w_tax + rates.d_tax) * (10_000 - rates.discount);
    (scaled + 50_000_000) / 100_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_stock_is_refilled() {
        assert_eq!((restocked(15, 5, false), restocked(15, 5, true)), (10, 10));
        assert_eq!((restocked(14, 5, false), restocked(14, 5, true)), (9, 100));
        assert_eq!((restocked(5, 5, false), restocked(6, 5, false)), (91, 1));
    }

    #[test]
    fn hammerdb_adds_taxes_and_subtracts_the_discount() {
        let rates = Rates {
            discount: 5000,
            w_tax: 1000,
            d_tax: 2000,
        };
        assert_eq!(amount(10, 1000, rates, false), 6500);
        assert_eq!(amount(10, 1000, rates, true), 10_000);
    }
}
