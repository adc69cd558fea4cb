//! The session of one thread: a terminal that draws the type and the inputs of the next transaction,
//! the same for all modes, waits and runs it.

use super::random;
use super::random::CUSTOMERS;
use super::random::DISTRICTS;
use super::transactions::Inputs;
use super::transactions::Kind;
use super::transactions::O_ID;
use super::transactions::fill;
use super::transactions::now;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::random::Rng;
use crate::suite::cell;

/// A terminal: its warehouses, district and random stream.
#[derive(Debug)]
pub struct Terminal {
    /// Number of warehouses in use.
    warehouses: i64,
    /// Its home warehouse, or its share of all warehouses.
    homes: Vec<i64>,
    /// The district of its stock levels.
    district: i64,
    rng: Rng,
}

impl Terminal {
    /// Terminal `thread` of `threads`. With `all` it owns every `threads`-th warehouse and draws
    /// one for each transaction, like HammerDB's allwarehouse; otherwise it draws one home
    /// warehouse.
    pub fn new(thread: usize, threads: usize, warehouses: i64, all: bool, mut rng: Rng) -> Self {
        let home = rng.uniform(1, warehouses);
        let district = rng.uniform(1, DISTRICTS);
        let (thread, threads) = (thread as i64, threads as i64);
        let homes = if all {
            let share = (warehouses + threads - 1) / threads;
            (0..share)
                .map(|j| (thread + j * threads) % warehouses + 1)
                .collect()
        } else {
            vec![home]
        };
        Self {
            warehouses,
            homes,
            district,
            rng,
        }
    }

    /// Draws the inputs of a transaction.
    fn inputs(&mut self, kind: Kind) -> Inputs {
        let w = self.home();
        let mut numbers = vec![("w", w)];
        let mut inputs = vec![("out", kind.transaction().out.to_owned()), ("now", now())];
        match kind {
            // Clause 2.4.1; the procedure draws the lines itself.
            Kind::NewOrder => numbers.extend([
                ("most_w", self.warehouses),
                ("d", self.rng.uniform(1, DISTRICTS)),
                ("c", self.rng.uniform(1, CUSTOMERS)),
                ("lines", self.rng.uniform(5, 15)),
            ]),
            // Clause 2.5.1; whole amounts in HammerDB.
            Kind::Payment => {
                let d = self.rng.uniform(1, DISTRICTS);
                let (c_w, c_d) = if self.percent(85) {
                    (w, d)
                } else {
                    let c_d = self.rng.uniform(1, DISTRICTS);
                    (random::other_warehouse(&mut self.rng, w, self.warehouses), c_d)
                };
                numbers.extend([("d", d), ("c_w", c_w), ("c_d", c_d)]);
                inputs.extend(self.customer());
                numbers.push(("amount", self.rng.uniform(1, 5000)));
            }
            // Clause 2.7.1.
            Kind::Delivery => numbers.push(("carrier", self.rng.uniform(1, 10))),
            // Clause 2.8.1.
            Kind::StockLevel => {
                numbers.extend([("d", self.district), ("under", self.rng.uniform(10, 20))]);
            }
            // Clause 2.6.1.
            Kind::OrderStatus => {
                numbers.push(("d", self.rng.uniform(1, DISTRICTS)));
                inputs.extend(self.customer());
            }
        }
        inputs.extend(
            numbers
                .into_iter()
                .map(|(name, number)| (name, number.to_string())),
        );
        inputs
    }

    /// The warehouse of the next transaction.
    fn home(&mut self) -> i64 {
        match self.homes.as_slice() {
            [only] => *only,
            several => several[self.rng.uniform(0, several.len() as i64 - 1) as usize],
        }
    }

    /// True with a probability in percent.
    fn percent(&mut self, percent: i64) -> bool {
        self.rng.uniform(1, 100) <= percent
    }

    /// A customer: 60 % by last name (clauses 2.5.1.2 and 2.6.1.2), the others by number. Both are
    /// always drawn, so that the stream does not depend on the choice.
    fn customer(&mut self) -> [(&'static str, String); 3] {
        let by_name = self.percent(60);
        let name = random::last_name(random::name(&mut self.rng));
        let c = self.rng.uniform(1, CUSTOMERS);
        [
            ("name", if by_name { name } else { String::new() }),
            ("by_name", u8::from(by_name).to_string()),
            ("c", c.to_string()),
        ]
    }
}

/// A terminal with its settings.
#[derive(Debug)]
pub struct TerminalSession {
    pub(super) terminal: Terminal,
    /// Whether it runs EXECUTE of prepared CALLs.
    pub(super) prepared: bool,
    /// With keying and think times.
    pub(super) pauses: bool,
    /// The think time after the last transaction in seconds.
    pub(super) thinking: f64,
}

impl Session for TerminalSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let kind = Kind::draw(&mut self.terminal.rng);
        if self.pauses && !self.pause(kind, client) {
            return Ok(Step::Exhausted);
        }
        client.start(kind as usize);
        let inputs = self.terminal.inputs(kind);
        let transaction = kind.transaction();
        let texts = match self.prepared {
            true => transaction.prepared,
            false => transaction.call,
        };
        for text in texts {
            client.query(fill(text, &inputs).as_bytes())?;
        }
        let rows = match transaction.result {
            Some(text) => client.query_rows(&fill(text, &inputs))?,
            None => Vec::new(),
        };
        let ordered = kind == Kind::NewOrder && cell(&rows, O_ID).is_some();
        if kind == Kind::NewOrder && !ordered {
            client.rolled_back();
        } else {
            client.committed();
        }
        Ok(Step::Done(u64::from(ordered)))
    }
}

impl TerminalSession {
    /// Waits for the think time of the last transaction and the keying time of the next one (TPC-C
    /// clause 5.2.5). False at the end of the phase.
    fn pause(&mut self, kind: Kind, client: &mut Client<'_>) -> bool {
        let (keying, mean) = kind.transaction().pauses;
        let next = think(&mut self.terminal.rng, mean);
        let wait_ns = ((self.thinking + keying) * 1e9) as i64;
        self.thinking = next;
        client.think(wait_ns)
    }
}

/// Draws a think time from the exponential distribution: whole seconds, as in HammerDB.
fn think(rng: &mut Rng, mean: f64) -> f64 {
    // 1 - u is never 0.
    (-(1.0 - rng.unit()).ln() * mean).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(thread: usize, threads: usize, warehouses: i64, all: bool) -> Terminal {
        let rng = Rng::new(3, thread as u64);
        Terminal::new(thread, threads, warehouses, all, rng)
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
        let home = terminal.homes[0].to_string();
        let payments: Vec<[String; 3]> = (0..20_000)
            .map(|_| terminal.inputs(Kind::Payment))
            .map(|inputs| ["w", "c_w", "by_name"].map(|name| fill(&format!("{{{name}}}"), &inputs)))
            .collect();
        assert!(payments.iter().all(|[w, ..]| *w == home));
        let share = |condition: &dyn Fn(&&[String; 3]) -> bool| {
            payments.iter().filter(condition).count() as f64 / 20_000.0
        };
        assert!((share(&|[_, c_w, _]| *c_w != home) - 0.15).abs() < 0.01);
        assert!((share(&|[_, _, by_name]| by_name == "1") - 0.60).abs() < 0.015);
    }

    #[test]
    fn think_times_have_their_mean() {
        let mut rng = Rng::new(5, 5);
        let sum: f64 = (0..100_000).map(|_| think(&mut rng, 12.0)).sum();
        assert!((sum / 100_000.0 - 12.0).abs() < 0.2, "{sum}");
    }
}
