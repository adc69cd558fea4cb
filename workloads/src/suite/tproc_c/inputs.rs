//! Draws the type of the next transaction of a terminal and its inputs, the same for all modes.

use super::random;
use super::random::DISTRICTS;
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

    /// Keying time and mean think time in seconds (TPC-C clause 5.2.5.7).
    pub const fn pauses(self) -> (f64, f64) {
        match self {
            Self::NewOrder => (18.0, 12.0),
            Self::Payment => (3.0, 12.0),
            Self::Delivery => (2.0, 10.0),
            Self::StockLevel | Self::OrderStatus => (2.0, 5.0),
        }
    }
}

/// A terminal: its warehouses, district and random stream.
#[derive(Debug)]
pub struct Terminal {
    /// Number of warehouses in use.
    pub warehouses: i64,
    /// Its home warehouse, or its share of all warehouses.
    pub homes: Vec<i64>,
    /// The district of its stock levels.
    pub district: i64,
    /// The rules of TPC-C.
    pub strict: bool,
    /// Its random stream.
    pub rng: Rng,
}

impl Terminal {
    /// Terminal `thread` of `threads`. With `all` it owns every `threads`-th warehouse and draws
    /// one for each transaction, like HammerDB's allwarehouse; otherwise it draws one home
    /// warehouse.
    pub fn new(
        thread: usize,
        threads: usize,
        warehouses: i64,
        all: bool,
        strict: bool,
        mut rng: Rng,
    ) -> Self {
        let home = rng.uniform(1, warehouses);
        let district = rng.uniform(1, DISTRICTS);
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let homes = if all {
            let share = (warehouses + number(threads) - 1) / number(threads);
            (0..share)
                .map(|j| (number(thread) + j * number(threads)) % warehouses + 1)
                .collect()
        } else {
            vec![home]
        };
        Self {
            warehouses,
            homes,
            district,
            strict,
            rng,
        }
    }

    /// The warehouse of the next transaction.
    pub fn home(&mut self) -> i64 {
        match self.homes.as_slice() {
            [only] => *only,
            several => {
                let last = i64::try_from(several.len()).unwrap_or(1) - 1;
                several[usize::try_from(self.rng.uniform(0, last)).unwrap_or(0)]
            }
        }
    }

    /// True with a probability in percent.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.rng.uniform(1, 100) <= percent
    }
}

/// Inputs of a new order; the procedure draws the lines itself.
#[derive(Debug, Clone, Copy)]
pub struct NewOrder {
    /// Warehouse.
    pub w: i64,
    /// District.
    pub d: i64,
    /// Customer.
    pub c: i64,
    /// Lines of the order.
    pub lines: i64,
}

impl NewOrder {
    /// Clause 2.4.1.
    pub fn draw(terminal: &mut Terminal) -> Self {
        let w = terminal.home();
        let rng = &mut terminal.rng;
        Self {
            w,
            d: rng.uniform(1, DISTRICTS),
            c: random::customer(rng, terminal.strict),
            lines: rng.uniform(5, 15),
        }
    }
}

/// A customer by last name or by number. Both are always drawn, so that the stream does not depend
/// on the choice.
#[derive(Debug, Clone)]
pub struct CustomerKey {
    /// The last name, if it selects the customer.
    pub name: Option<String>,
    /// The number.
    pub c: i64,
}

impl CustomerKey {
    /// 60 % by name (clauses 2.5.1.2 and 2.6.1.2).
    fn draw(terminal: &mut Terminal) -> Self {
        let by_name = terminal.percent(60);
        let strict = terminal.strict;
        let number = random::name_of_run(&mut terminal.rng, strict);
        let c = random::customer(&mut terminal.rng, strict);
        Self {
            name: by_name.then(|| random::last_name(number)),
            c,
        }
    }
}

/// Inputs of a payment.
#[derive(Debug, Clone)]
pub struct Payment {
    /// Warehouse.
    pub w: i64,
    /// District.
    pub d: i64,
    /// Warehouse of the customer.
    pub c_w: i64,
    /// District of the customer.
    pub c_d: i64,
    /// The paying customer.
    pub customer: CustomerKey,
    /// Amount in hundredths.
    pub cents: i64,
}

impl Payment {
    /// Clause 2.5.1; whole amounts in HammerDB.
    pub fn draw(terminal: &mut Terminal) -> Self {
        let w = terminal.home();
        let d = terminal.rng.uniform(1, DISTRICTS);
        let (c_w, c_d) = if terminal.percent(85) {
            (w, d)
        } else {
            let c_d = terminal.rng.uniform(1, DISTRICTS);
            let c_w = random::other_warehouse(&mut terminal.rng, w, terminal.warehouses);
            (c_w, c_d)
        };
        let customer = CustomerKey::draw(terminal);
        let cents = match terminal.strict {
            true => terminal.rng.uniform(100, 500_000),
            false => terminal.rng.uniform(1, 5000) * 100,
        };
        Self {
            w,
            d,
            c_w,
            c_d,
            customer,
            cents,
        }
    }
}

/// Inputs of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// Warehouse.
    pub w: i64,
    /// Carrier.
    pub carrier: i64,
}

impl Delivery {
    /// Clause 2.7.1.
    pub fn draw(terminal: &mut Terminal) -> Self {
        Self {
            w: terminal.home(),
            carrier: terminal.rng.uniform(1, 10),
        }
    }
}

/// Inputs of a stock level.
#[derive(Debug, Clone, Copy)]
pub struct StockLevel {
    /// Warehouse.
    pub w: i64,
    /// District, fixed per terminal.
    pub d: i64,
    /// Stock below this is low.
    pub threshold: i64,
}

impl StockLevel {
    /// Clause 2.8.1.
    pub fn draw(terminal: &mut Terminal) -> Self {
        Self {
            w: terminal.home(),
            d: terminal.district,
            threshold: terminal.rng.uniform(10, 20),
        }
    }
}

/// Inputs of an order status.
#[derive(Debug, Clone)]
pub struct OrderStatus {
    /// Warehouse.
    pub w: i64,
    /// District.
    pub d: i64,
    /// The customer.
    pub customer: CustomerKey,
}

impl OrderStatus {
    /// Clause 2.6.1.
    pub fn draw(terminal: &mut Terminal) -> Self {
        Self {
            w: terminal.home(),
            d: terminal.rng.uniform(1, DISTRICTS),
            customer: CustomerKey::draw(terminal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(thread: usize, threads: usize, warehouses: i64, all: bool) -> Terminal {
        Terminal::new(
            thread,
            threads,
            warehouses,
            all,
            false,
            Rng::new(3, thread as u64),
        )
    }

    #[test]
    fn all_warehouses_are_distributed_as_in_hammerdb() {
        assert_eq!(terminal(0, 4, 10, true).homes, [1, 5, 9]);
        // The last shares continue with the first warehouse.
        assert_eq!(terminal(3, 4, 10, true).homes, [4, 8, 2]);
        assert_eq!(terminal(5, 8, 3, true).homes, [3]);
    }

    #[test]
    fn a_home_is_constant_and_fifteen_percent_of_payments_are_remote() {
        let mut terminal = terminal(1, 2, 8, false);
        let home = terminal.homes[0];
        let payments: Vec<Payment> = (0..20_000).map(|_| Payment::draw(&mut terminal)).collect();
        assert!(payments.iter().all(|payment| payment.w == home));
        let share = |condition: &dyn Fn(&&Payment) -> bool| {
            payments.iter().filter(condition).count() as f64 / 20_000.0
        };
        assert!((share(&|payment| payment.c_w != home) - 0.15).abs() < 0.01);
        assert!((share(&|payment| payment.customer.name.is_some()) - 0.60).abs() < 0.015);
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
