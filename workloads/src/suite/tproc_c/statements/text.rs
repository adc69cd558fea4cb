//! The texts of the statements of transactions without procedures, in HammerDB's order and number.

use crate::driver::ParamType;

const I: ParamType = ParamType::Int;
const NAME: ParamType = ParamType::Char(16);
const MONEY: ParamType = ParamType::Char(24);
const DATE: ParamType = ParamType::Char(14);
const WORDS: ParamType = ParamType::Char(500);

/// A statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Key {
    /// START TRANSACTION.
    Start,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// Discount, name, credit of the customer and tax of the warehouse.
    Buyer,
    /// Number and tax of the district, locked.
    NextOrder,
    /// The next number.
    CountOrder,
    /// Price of an item.
    Item,
    /// Stock of an item.
    Stock,
    /// New stock.
    TakeStock,
    /// An order line.
    InsertLine,
    /// The order.
    InsertOrder,
    /// The waiting order.
    InsertNewOrder,
    /// w_ytd.
    PayWarehouse,
    /// Address of the warehouse.
    Warehouse,
    /// d_ytd.
    PayDistrict,
    /// Address of the district.
    District,
    /// Number of customers with this name.
    CountNames,
    /// Customers with this name, for a payment.
    PayersByName,
    /// One customer, for a payment.
    PayerById,
    /// c_data.
    CustomerData,
    /// Balance and c_data.
    PayBadCredit,
    /// Balance.
    PayGoodCredit,
    /// The payment.
    InsertHistory,
    /// The order to deliver.
    OldestOrder,
    /// Its row of waiting orders.
    DeleteNewOrder,
    /// Its customer.
    Orderer,
    /// The carrier.
    SetCarrier,
    /// The date of the lines.
    SetDelivered,
    /// Its sum.
    OrderTotal,
    /// The balance.
    AddBalance,
    /// Customers with this name, for an order status.
    AskersByName,
    /// One customer, for an order status.
    AskerById,
    /// The last order of a customer.
    LastOrder,
    /// Lines of an order.
    Lines,
    /// Number of the next order.
    NextNumber,
    /// Number of items with low stock.
    LowStock,
}

/// Number of statements.
pub const KEYS: usize = Key::LowStock as usize + 1;

/// All statements, in the order of [`Key`].
pub const ALL: [Key; KEYS] = {
    use Key as K;
    [
        K::Start,
        K::Commit,
        K::Rollback,
        K::Buyer,
        K::NextOrder,
        K::CountOrder,
        K::Item,
        K::Stock,
        K::TakeStock,
        K::InsertLine,
        K::InsertOrder,
        K::InsertNewOrder,
        K::PayWarehouse,
        K::Warehouse,
        K::PayDistrict,
        K::District,
        K::CountNames,
        K::PayersByName,
        K::PayerById,
        K::CustomerData,
        K::PayBadCredit,
        K::PayGoodCredit,
        K::InsertHistory,
        K::OldestOrder,
        K::DeleteNewOrder,
        K::Orderer,
        K::SetCarrier,
        K::SetDelivered,
        K::OrderTotal,
        K::AddBalance,
        K::AskersByName,
        K::AskerById,
        K::LastOrder,
        K::Lines,
        K::NextNumber,
        K::LowStock,
    ]
};

impl Key {
    /// Text and parameters. The strict rules lock rows before they change them and update all
    /// columns of TPC-C.
    pub fn definition(self, strict: bool) -> (String, &'static [ParamType]) {
        let (text, params) = self.raw(strict);
        let lock = if strict { " FOR UPDATE" } else { "" };
        let text = text
            .replace("{lock}", lock)
            .replace("{money}", "CAST(? AS DECIMAL(12,2))");
        (text, params)
    }

    fn raw(self, strict: bool) -> (&'static str, &'static [ParamType]) {
        match self {
            Self::Start => ("START TRANSACTION", &[]),
            Self::Commit => ("COMMIT", &[]),
            Self::Rollback => ("ROLLBACK", &[]),
            Self::Buyer
            | Self::NextOrder
            | Self::CountOrder
            | Self::Item
            | Self::Stock
            | Self::TakeStock
            | Self::InsertLine
            | Self::InsertOrder
            | Self::InsertNewOrder => self.new_order(strict),
            Self::PayWarehouse
            | Self::Warehouse
            | Self::PayDistrict
            | Self::District
            | Self::CountNames
            | Self::PayersByName
            | Self::PayerById
            | Self::CustomerData
            | Self::PayBadCredit
            | Self::PayGoodCredit
            | Self::InsertHistory => self.payment(strict),
            _ => self.others(strict),
        }
    }

    fn new_order(self, strict: bool) -> (&'static str, &'static [ParamType]) {
        match self {
            Self::Buyer => (
                "SELECT c_discount, c_last, c_credit, w_tax FROM warehouse, customer \
                 WHERE w_id = ? AND c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[I, I, I, I],
            ),
            Self::NextOrder => (
                "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
                &[I, I],
            ),
            Self::CountOrder => (
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
                &[I, I],
            ),
            Self::Item => ("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", &[I]),
            Self::Stock => (
                "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, \
                 s_dist_09, s_dist_10 FROM stock WHERE s_w_id = ? AND s_i_id = ?{lock}",
                &[I, I],
            ),
            Self::TakeStock if strict => (
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                 WHERE s_w_id = ? AND s_i_id = ?",
                &[I, I, I, I, I],
            ),
            Self::TakeStock => (
                "UPDATE stock SET s_quantity = ? WHERE s_w_id = ? AND s_i_id = ?",
                &[I, I, I],
            ),
            Self::InsertLine => (
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
                 ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &[I, I, I, I, I, I, I, MONEY, MONEY],
            ),
            Self::InsertOrder => (
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)",
                &[I, I, I, I, DATE, I, I],
            ),
            _ => (
                "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
                &[I, I, I],
            ),
        }
    }

    fn payment(self, strict: bool) -> (&'static str, &'static [ParamType]) {
        match self {
            Self::PayWarehouse => (
                "UPDATE warehouse SET w_ytd = w_ytd + {money} WHERE w_id = ?",
                &[MONEY, I],
            ),
            Self::Warehouse => (
                "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?",
                &[I],
            ),
            Self::PayDistrict => (
                "UPDATE district SET d_ytd = d_ytd + {money} WHERE d_w_id = ? AND d_id = ?",
                &[MONEY, I, I],
            ),
            Self::District => (
                "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = ? AND d_id = ?",
                &[I, I],
            ),
            Self::CountNames => (
                "SELECT COUNT(c_id) FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?",
                &[I, I, NAME],
            ),
            Self::PayersByName => (
                "SELECT c_first, c_middle, c_id, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, \
                 c_discount, c_balance, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first{lock}",
                &[I, I, NAME],
            ),
            Self::PayerById => (
                "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, \
                 c_discount, c_balance, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}",
                &[I, I, I],
            ),
            Self::CustomerData => (
                "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[I, I, I],
            ),
            Self::PayBadCredit if strict => (
                "UPDATE customer SET c_balance = ?, c_ytd_payment = c_ytd_payment + {money}, c_payment_cnt = c_payment_cnt + 1, \
                 c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, MONEY, WORDS, I, I, I],
            ),
            Self::PayBadCredit => (
                "UPDATE customer SET c_balance = ?, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, WORDS, I, I, I],
            ),
            Self::PayGoodCredit if strict => (
                "UPDATE customer SET c_balance = ?, c_ytd_payment = c_ytd_payment + {money}, c_payment_cnt = c_payment_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, MONEY, I, I, I],
            ),
            Self::PayGoodCredit => (
                "UPDATE customer SET c_balance = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, I, I, I],
            ),
            _ => (
                "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                &[I, I, I, I, I, DATE, MONEY, MONEY],
            ),
        }
    }

    fn others(self, strict: bool) -> (&'static str, &'static [ParamType]) {
        match self {
            Self::OldestOrder if strict => (
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                &[I, I],
            ),
            Self::OldestOrder => (
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? LIMIT 1",
                &[I, I],
            ),
            Self::DeleteNewOrder => (
                "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
                &[I, I, I],
            ),
            Self::Orderer => (
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                &[I, I, I],
            ),
            Self::SetCarrier => (
                "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                &[I, I, I, I],
            ),
            Self::SetDelivered => (
                "UPDATE order_line SET ol_delivery_d = STR_TO_DATE(?, '%Y%m%d%H%i%s') WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[DATE, I, I, I],
            ),
            Self::OrderTotal => (
                "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[I, I, I],
            ),
            Self::AddBalance if strict => (
                "UPDATE customer SET c_balance = c_balance + {money}, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, I, I, I],
            ),
            Self::AddBalance => (
                "UPDATE customer SET c_balance = c_balance + {money} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[MONEY, I, I, I],
            ),
            Self::AskersByName => (
                "SELECT c_balance, c_first, c_middle, c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
                &[I, I, NAME],
            ),
            Self::AskerById => (
                "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[I, I, I],
            ),
            Self::LastOrder => (
                "SELECT o_id, o_carrier_id, o_entry_d FROM (SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND \
                 o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC) AS newest LIMIT 1",
                &[I, I, I],
            ),
            Self::Lines => (
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[I, I, I],
            ),
            Self::NextNumber => (
                "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
                &[I, I],
            ),
            _ => (
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND \
                 ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
                &[I, I, I, I, I, I],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_is_unique_with_one_placeholder_per_parameter() {
        for strict in [false, true] {
            let mut texts = Vec::new();
            for (position, key) in ALL.into_iter().enumerate() {
                assert_eq!(key as usize, position);
                let (text, params) = key.definition(strict);
                assert_eq!(text.matches('?').count(), params.len(), "{text}");
                assert!(!text.contains('{') && !texts.contains(&text), "{text}");
                texts.push(text);
            }
        }
    }
}
