//! The transaction payment, statement by statement.

use super::Statements;
use super::answer::Answer;
use super::chosen;
use super::text::Key;
use crate::driver::DbError;
use crate::driver::Row;
use crate::driver::Value::Bytes;
use crate::driver::Value::Int;
use crate::engine::client::Client;
use crate::suite::tproc_c::call::Money;
use crate::suite::tproc_c::inputs::Payment;

/// Columns of the result for the customer.
const CREDIT: usize = 9;
const BALANCE: usize = 12;
/// Column of the name in the results for warehouse and district.
const PLACE: usize = 5;
/// Length of c_data.
const DATA: usize = 500;

impl Statements {
    pub(super) fn payment(&mut self, of: &Payment, client: &mut Client<'_>) -> Result<(), DbError> {
        let (w, d) = (Int(of.w), Int(of.d));
        let amount = Money(of.cents).to_string();
        let money = Bytes(amount.as_bytes());
        self.execute(client, Key::Start, &[])?;
        self.execute(client, Key::PayWarehouse, &[money, w])?;
        let warehouses = self.rows(client, Key::Warehouse, &[w])?;
        self.execute(client, Key::PayDistrict, &[money, w, d])?;
        let districts = self.rows(client, Key::District, &[w, d])?;
        let places = [
            Answer::of(warehouses.first(), Key::Warehouse).text(PLACE)?,
            Answer::of(districts.first(), Key::District).text(PLACE)?,
        ]
        .join(if self.strict { "    " } else { " " });
        let (c_w, c_d) = (Int(of.c_w), Int(of.c_d));
        let (payer, c) = self.payer(of, client)?;
        let balance = Answer::of(payer.first(), Key::PayerById).scaled(BALANCE, 2)?;
        // HammerDB adds the amount that TPC-C subtracts.
        let change = if self.strict { -of.cents } else { of.cents };
        let balance = Money(balance + change).to_string();
        let balance = Bytes(balance.as_bytes());
        let now = self.now.digits().to_owned();
        if Answer::of(payer.first(), Key::PayerById).text(CREDIT)? == "BC" {
            let rows = self.rows(client, Key::CustomerData, &[c_w, c_d, Int(c)])?;
            let old = Answer::of(rows.first(), Key::CustomerData).text(0)?;
            let data = about(of, c, &now, &places, old, self.strict);
            let data = Bytes(data.as_bytes());
            if self.strict {
                self.execute(
                    client,
                    Key::PayBadCredit,
                    &[balance, money, data, c_w, c_d, Int(c)],
                )?;
            } else {
                self.execute(client, Key::PayBadCredit, &[balance, data, c_w, c_d, Int(c)])?;
            }
        } else if self.strict {
            self.execute(client, Key::PayGoodCredit, &[balance, money, c_w, c_d, Int(c)])?;
        } else {
            self.execute(client, Key::PayGoodCredit, &[balance, c_w, c_d, Int(c)])?;
        }
        let values = [
            c_d,
            c_w,
            Int(c),
            d,
            w,
            Bytes(now.as_bytes()),
            money,
            Bytes(places.as_bytes()),
        ];
        self.execute(client, Key::InsertHistory, &values)?;
        self.commit(client)
    }

    /// The customer's row and number.
    fn payer(&self, of: &Payment, client: &mut Client<'_>) -> Result<(Vec<Row>, i64), DbError> {
        let (c_w, c_d) = (Int(of.c_w), Int(of.c_d));
        let Some(name) = &of.customer.name else {
            let rows = self.rows(client, Key::PayerById, &[c_w, c_d, Int(of.customer.c)])?;
            return Ok((rows, of.customer.c));
        };
        let name = Bytes(name.as_bytes());
        self.execute(client, Key::CountNames, &[c_w, c_d, name])?;
        let rows = self.rows(client, Key::PayersByName, &[c_w, c_d, name])?;
        let row = chosen(&rows, self.strict);
        let c = Answer::of(row, Key::PayersByName).int(2)?;
        Ok((row.cloned().into_iter().collect(), c))
    }
}

/// The new c_data of a customer with bad credit: the payment before the old text. HammerDB leaves
/// room for a second payment.
fn about(of: &Payment, c: i64, now: &str, places: &str, old: &str, strict: bool) -> String {
    let Payment {
        w,
        d,
        c_w,
        c_d,
        cents,
        ..
    } = of;
    let (mut text, room) = if strict {
        let text = format!("{c} {c_d} {c_w} {d} {w} {}|", Money(*cents));
        (text, DATA)
    } else {
        let text = format!("{c} {c_d} {c_w} {d} {w} {}.00{now}{places}", cents / 100);
        let room = DATA - text.len().min(DATA);
        (text, room)
    };
    text.push_str(old);
    // ASCII only: every byte is a character.
    text.truncate(room);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use crate::suite::tproc_c::inputs::Terminal;

    #[test]
    fn c_data_never_outgrows_its_column() {
        let mut terminal = Terminal::new(0, 1, 1, false, false, Rng::new(1, 1));
        let of = Payment::draw(&mut terminal);
        let old = "x".repeat(500);
        let strict = about(
            &of,
            3000,
            "20250101000000",
            "abcdefghij    abcdefghij",
            &old,
            true,
        );
        assert_eq!(strict.len(), 500);
        let loose = about(&of, 3000, "20250101000000", "abcdefghij abcdefghij", &old, false);
        assert!(loose.len() < 470 && loose.ends_with('x'), "{loose}");
    }
}
