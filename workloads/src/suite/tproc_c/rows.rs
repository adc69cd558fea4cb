//! Generates the initial rows by TPC-C clause 4.3.3.1, with HammerDB's ranges.

use std::fmt;
use std::fmt::Write;

use anyhow::Result;

use super::random::CUSTOMERS;
use super::random::DELIVERED;
use super::random::DISTRICTS;
use super::random::ITEMS;
use super::random::last_name;
use super::random::letters;
use super::random::name;
use crate::driver::Connection;
use crate::random::Rng;

/// Rows of one INSERT.
const BATCH: u64 = 1000;
/// The date of all rows, fixed so that one seed gives the same bytes on every day.
const LOADED: &str = "'2025-01-01 00:00:00'";

/// One tenth of the items, or of a warehouse: a district with its customers and orders, and a tenth
/// of the stock.
#[derive(Debug)]
pub struct Slice {
    /// The warehouse; 0 for the items.
    pub warehouse: i64,
    /// From 1 to 10.
    pub number: i64,
    /// The random stream of this slice.
    pub rng: Rng,
}

impl Slice {
    /// Inserts the rows and returns their number.
    pub fn insert(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        if self.warehouse == 0 {
            return self.items(connection);
        }
        let mut rows = 0;
        if self.number == 1 {
            rows += self.warehouse_row(connection)?;
        }
        rows += self.district(connection)?;
        rows += self.stock(connection)?;
        rows += self.customers(connection)?;
        Ok(rows + self.orders(connection)?)
    }

    fn numbers(&self) -> std::ops::RangeInclusive<i64> {
        let size = ITEMS / DISTRICTS;
        (self.number - 1) * size + 1..=self.number * size
    }

    fn word(&mut self, text: &mut String, shortest: i64, longest: i64) {
        text.push('\'');
        letters(&mut self.rng, text, shortest, longest);
        text.push('\'');
    }

    fn address(&mut self, text: &mut String) -> fmt::Result {
        for _ in 0..3 {
            self.word(text, 10, 20);
            text.push(',');
        }
        self.word(text, 2, 2);
        write!(text, ",'{:04}11111'", self.rng.uniform(0, 9999))
    }

    /// From 10 to 20 percent.
    fn tax(&mut self) -> f64 {
        self.rng.uniform(10, 20) as f64 / 100.0
    }

    /// 26 to 50 letters, with the word "original" in a tenth of the rows.
    fn data(&mut self, text: &mut String) {
        let start = text.len() + 1;
        self.word(text, 26, 50);
        if self.rng.uniform(1, 10) == 1 {
            let word = "original";
            let room = text.len() - 1 - start - word.len();
            let offset = self.rng.uniform(0, i64::try_from(room).unwrap_or(0));
            let at = start + usize::try_from(offset).unwrap_or(0);
            text.replace_range(at..at + word.len(), word);
        }
    }

    /// Inserts a row per value, in statements of at most [`BATCH`] rows; returns their number.
    fn rows<T>(
        &mut self,
        connection: &mut dyn Connection,
        head: &str,
        values: impl IntoIterator<Item = T>,
        row: impl Fn(&mut Self, &mut String, T) -> fmt::Result,
    ) -> Result<u64> {
        let (mut text, mut rows) = (String::new(), 0);
        for value in values {
            text.push_str(if text.is_empty() { head } else { "," });
            text.push('(');
            row(self, &mut text, value)?;
            text.push(')');
            rows += 1;
            if rows % BATCH == 0 {
                connection.query(text.as_bytes())?;
                text.clear();
            }
        }
        if !text.is_empty() {
            connection.query(text.as_bytes())?;
        }
        Ok(rows)
    }

    fn items(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let head = "INSERT INTO item (i_id,i_im_id,i_name,i_price,i_data) VALUES";
        self.rows(connection, head, self.numbers(), |slice, text, id| {
            write!(text, "{id},{},", slice.rng.uniform(1, 10_000))?;
            slice.word(text, 14, 24);
            write!(text, ",{:.2},", slice.rng.uniform(100, 10_000) as f64 / 100.0)?;
            slice.data(text);
            Ok(())
        })
    }

    fn warehouse_row(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let head = "INSERT INTO warehouse (w_id,w_ytd,w_tax,w_name,w_street_1,w_street_2,w_city,w_state,w_zip) VALUES";
        self.rows(connection, head, [self.warehouse], |slice, text, id| {
            write!(text, "{id},300000,{},", slice.tax())?;
            slice.word(text, 6, 10);
            text.push(',');
            slice.address(text)
        })
    }

    fn district(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let head = "INSERT INTO district (d_id,d_w_id,d_ytd,d_tax,d_next_o_id,d_name,d_street_1,d_street_2,d_city,d_state,d_zip) VALUES";
        self.rows(connection, head, [self.number], |slice, text, id| {
            let (tax, next) = (slice.tax(), CUSTOMERS + 1);
            write!(text, "{id},{},30000,{tax},{next},", slice.warehouse)?;
            slice.word(text, 6, 10);
            text.push(',');
            slice.address(text)
        })
    }

    fn stock(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let head = "INSERT INTO stock (s_i_id,s_w_id,s_quantity,s_dist_01,s_dist_02,s_dist_03,s_dist_04,s_dist_05,\
                    s_dist_06,s_dist_07,s_dist_08,s_dist_09,s_dist_10,s_ytd,s_order_cnt,s_remote_cnt,s_data) VALUES";
        self.rows(connection, head, self.numbers(), |slice, text, id| {
            write!(text, "{id},{},{},", slice.warehouse, slice.rng.uniform(10, 100))?;
            for _ in 0..DISTRICTS {
                slice.word(text, 24, 24);
                text.push(',');
            }
            text.push_str("0,0,0,");
            slice.data(text);
            Ok(())
        })
    }

    fn customers(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let head = "INSERT INTO customer (c_id,c_d_id,c_w_id,c_credit_lim,c_balance,c_ytd_payment,c_payment_cnt,c_delivery_cnt,\
                    c_middle,c_since,c_first,c_last,c_street_1,c_street_2,c_city,c_state,c_zip,c_phone,c_credit,c_discount,c_data) VALUES";
        let customers = self.rows(connection, head, 1..=CUSTOMERS, Self::customer)?;
        let head =
            "INSERT INTO history (h_c_id,h_c_d_id,h_c_w_id,h_d_id,h_w_id,h_date,h_amount,h_data) VALUES";
        let history = self.rows(connection, head, 1..=CUSTOMERS, |slice, text, id| {
            let (warehouse, district) = (slice.warehouse, slice.number);
            write!(
                text,
                "{id},{district},{warehouse},{district},{warehouse},{LOADED},10,"
            )?;
            slice.word(text, 12, 24);
            Ok(())
        })?;
        Ok(customers + history)
    }

    fn customer(&mut self, text: &mut String, id: i64) -> fmt::Result {
        write!(
            text,
            "{id},{},{},50000,-10,10,1,0,'OE',{LOADED},",
            self.number, self.warehouse
        )?;
        self.word(text, 8, 16);
        // Each name occurs at least once.
        let number = if id <= 1000 { id - 1 } else { name(&mut self.rng) };
        write!(text, ",'{}',", last_name(number))?;
        self.address(text)?;
        let phone = (self.rng.uniform(0, 99_999_999), self.rng.uniform(0, 99_999_999));
        // Half of the customers have bad credit in HammerDB, a tenth in TPC-C.
        let credit = if self.rng.uniform(1, 100) <= 50 {
            "BC"
        } else {
            "GC"
        };
        let discount = self.rng.uniform(0, 50) as f64 / 100.0;
        write!(text, ",'{:08}{:08}','{credit}',{discount},", phone.0, phone.1)?;
        self.word(text, 300, 500);
        Ok(())
    }

    /// The customers of the orders. TPC-C permutes all customers; HammerDB draws each from the
    /// order's number up, which leaves customers without an order.
    fn buyers(&mut self) -> Vec<i64> {
        let mut buyers: Vec<i64> = (1..=CUSTOMERS).collect();
        for position in 0..buyers.len() {
            let drawn = self.rng.uniform(position as i64, CUSTOMERS - 1) as usize;
            buyers[position] = buyers[drawn];
        }
        buyers
    }

    fn orders(&mut self, connection: &mut dyn Connection) -> Result<u64> {
        let lines: Vec<i64> = (0..CUSTOMERS).map(|_| self.rng.uniform(5, 15)).collect();
        let head = "INSERT INTO orders (o_id,o_d_id,o_w_id,o_c_id,o_entry_d,o_carrier_id,o_ol_cnt,o_all_local) VALUES";
        let orders = (1..).zip(self.buyers()).zip(&lines);
        let mut rows = self.rows(connection, head, orders, |slice, text, ((id, buyer), lines)| {
            write!(
                text,
                "{id},{},{},{buyer},{LOADED},",
                slice.number, slice.warehouse
            )?;
            match id > DELIVERED {
                true => text.push_str("NULL"),
                false => write!(text, "{}", slice.rng.uniform(1, 10))?,
            }
            write!(text, ",{lines},1")
        })?;
        let head = "INSERT INTO new_order (no_o_id,no_d_id,no_w_id) VALUES";
        rows += self.rows(connection, head, DELIVERED + 1..=CUSTOMERS, |slice, text, id| {
            write!(text, "{id},{},{}", slice.number, slice.warehouse)
        })?;
        let head = "INSERT INTO order_line (ol_o_id,ol_d_id,ol_w_id,ol_number,ol_i_id,ol_supply_w_id,ol_quantity,\
                    ol_delivery_d,ol_amount,ol_dist_info) VALUES";
        let lines = (1..).zip(&lines);
        let lines = lines.flat_map(|(id, lines)| (1..=*lines).map(move |number| (id, number)));
        Ok(rows + self.rows(connection, head, lines, Self::order_line)?)
    }

    fn order_line(&mut self, text: &mut String, (order, number): (i64, i64)) -> fmt::Result {
        let (warehouse, district) = (self.warehouse, self.number);
        let item = self.rng.uniform(1, ITEMS);
        write!(
            text,
            "{order},{district},{warehouse},{number},{item},{warehouse},5,"
        )?;
        let delivered = order <= DELIVERED;
        text.push_str(if delivered { LOADED } else { "NULL" });
        // HammerDB sets amounts in delivered orders, TPC-C in waiting orders.
        match delivered {
            true => write!(text, ",{:.2},", self.rng.uniform(10, 10_000) as f64 / 100.0)?,
            false => text.push_str(",0,"),
        }
        self.word(text, 24, 24);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::driver::dry_run::DryRun;

    /// The statements of one tenth, and the number of rows that it returns.
    fn tenth(warehouse: i64, seed: u64) -> (u64, Vec<String>) {
        let driver = DryRun::default();
        let mut connection = driver.connect().unwrap();
        let mut slice = Slice {
            warehouse,
            number: 1,
            rng: Rng::new(seed, 0),
        };
        let rows = slice.insert(connection.as_mut()).unwrap();
        let log = driver.log.lock().unwrap();
        (rows, log.iter().map(|(_, text)| text.clone()).collect())
    }

    /// Rows of the texts that start with `head`; no value contains a parenthesis.
    fn rows_of(texts: &[String], head: &str) -> usize {
        let rows = |text: &String| text.matches('(').count() - 1;
        texts.iter().filter(|text| text.starts_with(head)).map(rows).sum()
    }

    #[test]
    fn a_tenth_of_a_warehouse_has_its_rows_in_statements_of_a_thousand() {
        let (rows, texts) = tenth(1, 7);
        for (head, expected) in [
            ("INSERT INTO warehouse ", 1),
            ("INSERT INTO district ", 1),
            ("INSERT INTO stock ", 10_000),
            ("INSERT INTO customer ", 3000),
            ("INSERT INTO history ", 3000),
            ("INSERT INTO orders ", 3000),
            ("INSERT INTO new_order ", 900),
        ] {
            assert_eq!(rows_of(&texts, head), expected, "{head}");
        }
        let lines = rows_of(&texts, "INSERT INTO order_line ");
        assert!((29_000..31_000).contains(&lines), "{lines}");
        assert_eq!(rows, 1 + 1 + 10_000 + 3 * 3000 + 900 + lines as u64);
        assert!(
            texts
                .iter()
                .all(|text| rows_of(std::slice::from_ref(text), "") <= 1000)
        );
    }

    #[test]
    fn one_seed_gives_the_same_statements() {
        assert_eq!(tenth(1, 7), tenth(1, 7));
        assert_ne!(tenth(1, 7).1, tenth(1, 8).1);
        let items = tenth(0, 7).1;
        assert_eq!(rows_of(&items, "INSERT INTO item "), 10_000);
    }

    #[test]
    fn about_half_of_the_customers_have_an_order() {
        let mut slice = Slice {
            warehouse: 1,
            number: 1,
            rng: Rng::new(3, 3),
        };
        let mut buyers = slice.buyers();
        buyers.sort_unstable();
        buyers.dedup();
        assert!((1400..1600).contains(&buyers.len()), "{}", buyers.len());
    }
}
