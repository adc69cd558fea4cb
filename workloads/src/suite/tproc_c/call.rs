//! Runs transactions by the stored procedures, with the round trips of HammerDB's driver: SET of
//! the variables, CALL (or EXECUTE of a CALL prepared in SQL), SELECT of the results.

use std::fmt::Write;

use super::clock::Timestamp;
use super::inputs::Delivery;
use super::inputs::Kind;
use super::inputs::NewOrder;
use super::inputs::OrderStatus;
use super::inputs::Payment;
use super::inputs::StockLevel;
use super::inputs::Terminal;
use crate::driver::DbError;
use crate::driver::Row;
use crate::engine::client::Client;

const NEW_ORDER_RESULT: &str = "SELECT @n_disc,@n_name,@n_rate,@d_tax,@w_tax,@n_order";
/// Column of the order's number in this result.
const O_ID: usize = 5;
const PAYMENT_RESULT: &str = "SELECT @r_c_id,@r_c_last,@r_w_street_1,@r_w_street_2,@r_w_city,@r_w_state,@r_w_zip,@r_d_street_1,\
    @r_d_street_2,@r_d_city,@r_d_state,@r_d_zip,@r_c_first,@r_c_middle,@r_c_street_1,@r_c_street_2,@r_c_city,@r_c_state,@r_c_zip,\
    @r_c_phone,@r_c_since,@r_c_credit,@r_c_credit_lim,@r_c_discount,@r_c_balance,@r_c_data";
const ORDER_STATUS_RESULT: &str =
    "SELECT @s_c_id,@s_c_last,@s_c_first,@s_c_middle,@s_c_balance,@s_o_id,@s_entdate,@s_o_carrier_id";
const STOCK_LEVEL_RESULT: &str = "SELECT @l_count";

/// The OUT parameters of PAYMENT between the name and the date.
const PAYMENT_OUT: &str = "@r_w_street_1,@r_w_street_2,@r_w_city,@r_w_state,@r_w_zip,@r_d_street_1,@r_d_street_2,@r_d_city,\
    @r_d_state,@r_d_zip,@r_c_first,@r_c_middle,@r_c_street_1,@r_c_street_2,@r_c_city,@r_c_state,@r_c_zip,@r_c_phone,@r_c_since";
const ORDER_STATUS_OUT: &str = "@s_c_first,@s_c_middle,@s_c_balance,@s_o_id,@s_entdate,@s_o_carrier_id";

/// The PREPARE statements of the mode `prepared` for each connection.
pub fn preparations() -> [String; 5] {
    [
        "PREPARE call_neword FROM 'CALL NEWORD(?,?,?,?,?,@n_disc,@n_name,@n_rate,@d_tax,@w_tax,?,?)'"
            .to_owned(),
        format!(
            "PREPARE call_payment FROM 'CALL PAYMENT(?,?,?,?,?,?,?,?,{PAYMENT_OUT},?,@r_c_credit_lim,@r_c_discount,?,@r_c_data,?)'"
        ),
        "PREPARE call_delivery FROM 'CALL DELIVERY(?,?,?)'".to_owned(),
        "PREPARE call_slev FROM 'CALL SLEV(?,?,?,@l_count)'".to_owned(),
        format!("PREPARE call_ostat FROM 'CALL OSTAT(?,?,?,?,?,{ORDER_STATUS_OUT})'"),
    ]
}

/// Calls the procedures for one thread.
#[derive(Debug)]
pub struct Caller {
    /// Whether it runs EXECUTE of a prepared CALL.
    prepared: bool,
    text: String,
    now: Timestamp,
}

impl Caller {
    /// With prepared or plain CALLs.
    pub fn new(prepared: bool) -> Self {
        Self {
            prepared,
            text: String::new(),
            now: Timestamp::default(),
        }
    }

    /// Runs a transaction; true if it was a new order that committed.
    pub fn run(
        &mut self,
        kind: Kind,
        terminal: &mut Terminal,
        client: &mut Client<'_>,
    ) -> Result<bool, DbError> {
        let mut ordered = false;
        match kind {
            Kind::NewOrder => {
                ordered = self.new_order(NewOrder::draw(terminal), terminal.warehouses, client)?
            }
            Kind::Payment => self.payment(&Payment::draw(terminal), client)?,
            Kind::Delivery => self.delivery(Delivery::draw(terminal), client)?,
            Kind::StockLevel => self.stock_level(StockLevel::draw(terminal), client)?,
            Kind::OrderStatus => self.order_status(&OrderStatus::draw(terminal), client)?,
        }
        if kind == Kind::NewOrder && !ordered {
            client.rolled_back();
        } else {
            client.committed();
        }
        Ok(ordered)
    }

    /// Sends a text.
    fn send(&mut self, client: &mut Client<'_>, arguments: std::fmt::Arguments<'_>) -> Result<(), DbError> {
        self.text.clear();
        // Writing to a String cannot fail.
        self.text.write_fmt(arguments).ok();
        client.query(self.text.as_bytes())
    }

    fn new_order(&mut self, of: NewOrder, warehouses: i64, client: &mut Client<'_>) -> Result<bool, DbError> {
        let NewOrder { w, d, c, lines } = of;
        let now = self.now.text();
        if self.prepared {
            self.send(client, format_args!(
                "SET @n_w={w},@n_most_w={warehouses},@n_d={d},@n_c={c},@n_lines={lines},@n_order=0,@n_now={now}"
            ))?;
            self.send(
                client,
                format_args!("EXECUTE call_neword USING @n_w,@n_most_w,@n_d,@n_c,@n_lines,@n_order,@n_now"),
            )?;
        } else {
            self.send(client, format_args!("SET @n_order = 0"))?;
            self.send(client, format_args!(
                "CALL NEWORD({w},{warehouses},{d},{c},{lines},@n_disc,@n_name,@n_rate,@d_tax,@w_tax,@n_order,{now})"
            ))?;
        }
        let rows = client.query_rows(NEW_ORDER_RESULT)?;
        Ok(is_not_null(&rows, O_ID))
    }

    fn payment(&mut self, of: &Payment, client: &mut Client<'_>) -> Result<(), DbError> {
        let Payment { w, d, c_w, c_d, .. } = of;
        let (name, by_name) = (
            of.customer.name.as_deref().unwrap_or_default(),
            u8::from(of.customer.name.is_some()),
        );
        let (c, amount, now) = (of.customer.c, Money(of.cents), self.now.text());
        if self.prepared {
            self.send(client, format_args!(
                "SET @r_w={w},@r_d={d},@r_c_w={c_w},@r_c_d={c_d},@r_c_id={c},@by_name={by_name},@r_amount={amount},\
                 @r_c_last='{name}',@r_c_credit=0,@r_c_balance=0,@r_now={now}"
            ))?;
            self.send(client, format_args!(
                "EXECUTE call_payment USING @r_w,@r_d,@r_c_w,@r_c_d,@r_c_id,@by_name,@r_amount,@r_c_last,@r_c_credit,\
                 @r_c_balance,@r_now"
            ))?;
        } else {
            self.send(
                client,
                format_args!("SET @r_c_id = {c}, @r_c_last = '{name}', @r_c_credit = 0, @r_c_balance = 0"),
            )?;
            self.send(client, format_args!(
                "CALL PAYMENT({w},{d},{c_w},{c_d},@r_c_id,{by_name},{amount},@r_c_last,{PAYMENT_OUT},@r_c_credit,@r_c_credit_lim,\
                 @r_c_discount,@r_c_balance,@r_c_data,{now})"
            ))?;
        }
        client.query_rows(PAYMENT_RESULT).map(drop)
    }

    fn delivery(&mut self, of: Delivery, client: &mut Client<'_>) -> Result<(), DbError> {
        let Delivery { w, carrier } = of;
        let now = self.now.text();
        if self.prepared {
            self.send(
                client,
                format_args!("SET @d_w={w},@d_carrier={carrier},@d_now={now}"),
            )?;
            return self.send(
                client,
                format_args!("EXECUTE call_delivery USING @d_w,@d_carrier,@d_now"),
            );
        }
        self.send(client, format_args!("CALL DELIVERY({w},{carrier},{now})"))
    }

    fn stock_level(&mut self, of: StockLevel, client: &mut Client<'_>) -> Result<(), DbError> {
        let StockLevel { w, d, threshold } = of;
        if self.prepared {
            self.send(client, format_args!("SET @l_w={w},@l_d={d},@l_under={threshold}"))?;
            self.send(client, format_args!("EXECUTE call_slev USING @l_w,@l_d,@l_under"))?;
        } else {
            self.send(client, format_args!("CALL SLEV({w},{d},{threshold},@l_count)"))?;
        }
        client.query_rows(STOCK_LEVEL_RESULT).map(drop)
    }

    fn order_status(&mut self, of: &OrderStatus, client: &mut Client<'_>) -> Result<(), DbError> {
        let OrderStatus { w, d, customer } = of;
        let (name, by_name, c) = (
            customer.name.as_deref().unwrap_or_default(),
            u8::from(customer.name.is_some()),
            customer.c,
        );
        if self.prepared {
            self.send(
                client,
                format_args!("SET @s_w={w},@s_d={d},@s_c_id={c},@by_name={by_name},@s_c_last='{name}'"),
            )?;
            self.send(
                client,
                format_args!("EXECUTE call_ostat USING @s_w,@s_d,@s_c_id,@by_name,@s_c_last"),
            )?;
        } else {
            self.send(client, format_args!("SET @s_c_id = {c}, @s_c_last = '{name}'"))?;
            self.send(
                client,
                format_args!("CALL OSTAT({w},{d},@s_c_id,{by_name},@s_c_last,{ORDER_STATUS_OUT})"),
            )?;
        }
        client.query_rows(ORDER_STATUS_RESULT).map(drop)
    }
}

/// Our procedure returns NULL as the number of an order that it rolled back; HammerDB's procedure
/// returns the number.
fn is_not_null(rows: &[Row], column: usize) -> bool {
    rows.first()
        .and_then(|row| row.get(column))
        .is_some_and(Option::is_some)
}

/// Hundredths as a decimal number, without a fraction of zero.
#[derive(Debug, Clone, Copy)]
pub struct Money(pub i64);

impl std::fmt::Display for Money {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, cents) = (if self.0 < 0 { "-" } else { "" }, self.0.abs());
        match cents % 100 {
            0 => write!(formatter, "{sign}{}", cents / 100),
            rest => write!(formatter, "{sign}{}.{rest:02}", cents / 100),
        }
    }
}
