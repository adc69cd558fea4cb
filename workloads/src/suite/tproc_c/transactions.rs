//! The five transactions as data: the statements of each in HammerDB's driver, which are SET of the
//! variables, CALL (or EXECUTE of a CALL prepared in SQL) and SELECT of the results.

use std::time::Duration;
use std::time::UNIX_EPOCH;

use loadprint_recording::clock::realtime_ns;

use crate::random::Rng;

/// The transaction types, in the order of [`TYPES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// A new order.
    NewOrder,
    /// A payment.
    Payment,
    /// The delivery of the oldest order of each district.
    Delivery,
    /// The stock of the last twenty orders.
    StockLevel,
    /// The last order of a customer.
    OrderStatus,
}

/// Names of the types, as HammerDB's procedures are called.
pub const TYPES: &[&str] = &["neword", "payment", "delivery", "slev", "ostat"];

impl Kind {
    /// Draws a type from the mix 10 : 10 : 1 : 1 : 1.
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.uniform(1, 23) {
            1..=10 => Self::NewOrder,
            11..=20 => Self::Payment,
            21 => Self::Delivery,
            22 => Self::StockLevel,
            _ => Self::OrderStatus,
        }
    }

    /// Its statements and pauses.
    pub const fn transaction(self) -> &'static Transaction {
        &TRANSACTIONS[self as usize]
    }
}

/// A transaction. Its texts contain the names of inputs in braces.
#[derive(Debug)]
pub struct Transaction {
    /// Keying time and mean think time in seconds (TPC-C clause 5.2.5.7).
    pub pauses: (f64, f64),
    /// The input `{out}`: variables of the results.
    pub out: &'static str,
    /// The statements in the mode `call`.
    pub call: &'static [&'static str],
    /// PREPARE on each connection, and the statements in the mode `prepared`.
    pub preparation: &'static str,
    pub prepared: &'static [&'static str],
    pub result: Option<&'static str>,
}

/// By [`Kind`].
pub const TRANSACTIONS: [Transaction; 5] = [
    Transaction {
        pauses: (18.0, 12.0),
        out: "@n_disc,@n_name,@n_rate,@d_tax,@w_tax",
        call: &[
            "SET @n_order = 0",
            "CALL NEWORD({w},{most_w},{d},{c},{lines},{out},@n_order,{now})",
        ],
        preparation: "PREPARE call_neword FROM 'CALL NEWORD(?,?,?,?,?,{out},?,?)'",
        prepared: &[
            "SET @n_w={w},@n_most_w={most_w},@n_d={d},@n_c={c},@n_lines={lines},@n_order=0,@n_now={now}",
            "EXECUTE call_neword USING @n_w,@n_most_w,@n_d,@n_c,@n_lines,@n_order,@n_now",
        ],
        result: Some("SELECT {out},@n_order"),
    },
    Transaction {
        pauses: (3.0, 12.0),
        out: "@r_w_street_1,@r_w_street_2,@r_w_city,@r_w_state,@r_w_zip,@r_d_street_1,@r_d_street_2,@r_d_city,@r_d_state,@r_d_zip,\
              @r_c_first,@r_c_middle,@r_c_street_1,@r_c_street_2,@r_c_city,@r_c_state,@r_c_zip,@r_c_phone,@r_c_since",
        call: &[
            "SET @r_c_id = {c}, @r_c_last = '{name}', @r_c_credit = 0, @r_c_balance = 0",
            "CALL PAYMENT({w},{d},{c_w},{c_d},@r_c_id,{by_name},{amount},@r_c_last,{out},@r_c_credit,@r_c_credit_lim,\
             @r_c_discount,@r_c_balance,@r_c_data,{now})",
        ],
        preparation: "PREPARE call_payment FROM 'CALL PAYMENT(?,?,?,?,?,?,?,?,{out},?,@r_c_credit_lim,@r_c_discount,?,@r_c_data,?)'",
        prepared: &[
            "SET @r_w={w},@r_d={d},@r_c_w={c_w},@r_c_d={c_d},@r_c_id={c},@by_name={by_name},@r_amount={amount},\
             @r_c_last='{name}',@r_c_credit=0,@r_c_balance=0,@r_now={now}",
            "EXECUTE call_payment USING @r_w,@r_d,@r_c_w,@r_c_d,@r_c_id,@by_name,@r_amount,@r_c_last,@r_c_credit,\
             @r_c_balance,@r_now",
        ],
        result: Some(
            "SELECT @r_c_id,@r_c_last,{out},@r_c_credit,@r_c_credit_lim,@r_c_discount,@r_c_balance,@r_c_data",
        ),
    },
    Transaction {
        pauses: (2.0, 10.0),
        out: "",
        call: &["CALL DELIVERY({w},{carrier},{now})"],
        preparation: "PREPARE call_delivery FROM 'CALL DELIVERY(?,?,?)'",
        prepared: &[
            "SET @d_w={w},@d_carrier={carrier},@d_now={now}",
            "EXECUTE call_delivery USING @d_w,@d_carrier,@d_now",
        ],
        result: None,
    },
    Transaction {
        pauses: (2.0, 5.0),
        out: "@l_count",
        call: &["CALL SLEV({w},{d},{under},{out})"],
        preparation: "PREPARE call_slev FROM 'CALL SLEV(?,?,?,{out})'",
        prepared: &[
            "SET @l_w={w},@l_d={d},@l_under={under}",
            "EXECUTE call_slev USING @l_w,@l_d,@l_under",
        ],
        result: Some("SELECT {out}"),
    },
    Transaction {
        pauses: (2.0, 5.0),
        out: "@s_c_first,@s_c_middle,@s_c_balance,@s_o_id,@s_entdate,@s_o_carrier_id",
        call: &[
            "SET @s_c_id = {c}, @s_c_last = '{name}'",
            "CALL OSTAT({w},{d},@s_c_id,{by_name},@s_c_last,{out})",
        ],
        preparation: "PREPARE call_ostat FROM 'CALL OSTAT(?,?,?,?,?,{out})'",
        prepared: &[
            "SET @s_w={w},@s_d={d},@s_c_id={c},@by_name={by_name},@s_c_last='{name}'",
            "EXECUTE call_ostat USING @s_w,@s_d,@s_c_id,@by_name,@s_c_last",
        ],
        result: Some("SELECT @s_c_id,@s_c_last,{out}"),
    },
];

/// Column of the order's number in the result of a new order. Our procedure returns NULL for an
/// order that it rolled back; HammerDB's procedure returns the number.
pub const O_ID: usize = 5;

/// The inputs of a transaction by their names.
pub type Inputs = Vec<(&'static str, String)>;

/// The text with its inputs.
pub fn fill(text: &str, inputs: &Inputs) -> String {
    let mut filled = String::new();
    for (position, piece) in text.split(['{', '}']).enumerate() {
        let input = inputs.iter().find(|(name, _)| *name == piece);
        filled.push_str(match input {
            // The odd pieces are between braces.
            Some((_, value)) if position % 2 == 1 => value,
            _ => piece,
        });
    }
    filled
}

/// The PREPARE statements of the mode `prepared` for each connection.
pub fn preparations() -> impl Iterator<Item = String> {
    TRANSACTIONS.iter().map(|transaction| {
        fill(
            transaction.preparation,
            &vec![("out", transaction.out.to_owned())],
        )
    })
}

/// The SQL expression of the present second, as in HammerDB's driver, in UTC.
pub fn now() -> String {
    timestamp(realtime_ns() / 1_000_000_000)
}

fn timestamp(second: i64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(second).unwrap_or(0));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    format!("str_to_date({digits},'%Y%m%d%H%i%s')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_fourteen_digits() {
        let text = timestamp(1_709_210_096);
        assert_eq!(text, "str_to_date(20240229123456,'%Y%m%d%H%i%s')");
    }

    #[test]
    fn the_mix_is_ten_ten_one_one_one() {
        let mut rng = Rng::new(1, 1);
        let mut counts = [0; 5];
        for _ in 0..230_000 {
            counts[Kind::draw(&mut rng) as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([100_000, 100_000, 10_000, 10_000, 10_000]) {
            assert!(i32::abs(count - expected) < 1500, "{counts:?}");
        }
    }
}
