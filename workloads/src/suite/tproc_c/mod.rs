//! The workload `tproc_c`: the order-entry workload that HammerDB derives from TPC-C, on its
//! schema, with its five stored procedures.

mod check;
mod load;
mod preflight;
mod procedures;
mod random;
mod rows;
mod session;
mod tables;
mod transactions;

use std::sync::Mutex;

use anyhow::Result;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::client_failure;
use crate::driver::protocol;
use crate::driver::protocol::Protocol;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Moment;
use crate::engine::load::Session;
use crate::external;
use crate::lock::lock;
use crate::options::Values;
use crate::options::options;
use crate::random::Rng;
use crate::suite::number;
use crate::workload::Descriptor;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;
use session::Terminal;
use session::TerminalSession;
pub use transactions::TYPES;

options! {
    /// Options of the workload.
    pub OPTIONS, Options;
    warehouses: i64 = Int(1, 100_000)
        .default("1")
        .help("prepare: warehouses to load, about 100 MB each; run: number of warehouses to use [default for run: all]"),
    tproc_mode: Mode = Choice(&["call", "prepared"])
        .default("call")
        .help("call: CALL of the procedures as text; prepared: SQL PREPARE and EXECUTE of the CALLs"),
    all_warehouses: bool = Flag
        .default("off")
        .help("each thread uses its share of all warehouses instead of one warehouse"),
    keying_thinking: bool = Flag
        .default("off")
        .help("keying times (18, 3, 2 s) and think times (mean 12, 10, 5 s) of TPC-C: about 1.3 new orders per minute and thread"),
    check: bool = Flag
        .default("off")
        .help("run: check the consistency of the data after the run; exit status 1 if a rule is broken"),
    mysql_storage_engine: String = Text("ENGINE")
        .default("innodb")
        .help("prepare: storage engine"),
    partition: bool = Flag
        .default("off")
        .help("prepare: one partition of order_line per 100 warehouses, from 200 warehouses on"),
    history_pk: bool = Flag
        .default("off")
        .help("prepare: an invisible AUTO_INCREMENT key for history (MySQL 8.0.30 and later)"),
}

/// `--tproc-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Call,
    Prepared,
}

static DESCRIPTOR: Descriptor = Descriptor {
    name: "tproc_c",
    summary: "HammerDB's order entry derived from TPC-C: new orders, payments, deliveries, stock levels, order status",
    operation: "TPROC-C new order (whole mix)",
    types: TYPES,
    options: &[OPTIONS, external::HAMMERDB],
    database: "tpcc",
};

/// The workload `tproc_c`.
#[derive(Debug)]
pub struct TprocC;

impl Workload for TprocC {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    /// As in HammerDB.
    fn protocol(&self) -> Option<Protocol> {
        Some(Protocol::Text)
    }

    fn prepare(&self, setup: &Setup<'_>) -> Result<()> {
        load::prepare(setup)
    }

    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        load::warmup(setup)
    }

    fn preflight(&self, values: &Values, threads: usize, connection: &mut dyn Connection) -> Result<()> {
        preflight::preflight(values, threads, connection)
    }

    fn check(&self, setup: &Setup<'_>) -> Result<Vec<Finding>> {
        check::check(setup)
    }

    fn cleanup(&self, setup: &Setup<'_>) -> Result<()> {
        load::cleanup(setup)
    }

    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>> {
        let options: Options = values.read()?;
        Ok(Box::new(TprocLoad {
            warehouses: given_warehouses(values)?,
            mode: options.tproc_mode,
            all: options.all_warehouses,
            pauses: options.keying_thinking,
            threads,
            seed,
            counts: Mutex::default(),
        }))
    }
}

/// `--warehouses` of `run`, if given.
fn given_warehouses(values: &Values) -> Result<Option<i64>> {
    let warehouses = values.read::<Options>()?.warehouses;
    Ok(values.given("warehouses")?.then_some(warehouses))
}

/// The server counters that HammerDB reads.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Com_commit and Com_rollback, of all clients.
    transactions: u64,
    /// The sum of d_next_o_id.
    orders: u64,
    warehouses: u64,
}

impl Counts {
    fn read(connection: &mut dyn Connection) -> Result<Self, DbError> {
        let sum = "SELECT COALESCE(SUM(d_next_o_id), 0), COALESCE(MAX(d_w_id), 0) FROM district";
        let district = connection.rows(sum)?;
        let names = "'Com_commit', 'Com_rollback'";
        let status = connection.rows(&format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"))?;
        let counts = || {
            Some(Self {
                transactions: number::<u64>(&status, 1)? + number::<u64>(status.get(1..)?, 1)?,
                orders: number(&district, 0)?,
                warehouses: number(&district, 1)?,
            })
        };
        let failure = || client_failure(&format!("cannot read {names} or d_next_o_id"));
        counts().ok_or_else(|| DbError::Fatal(failure()))
    }
}

/// The load with its options.
#[derive(Debug)]
struct TprocLoad {
    warehouses: Option<i64>,
    mode: Mode,
    all: bool,
    pauses: bool,
    threads: usize,
    seed: u64,
    /// Before and after `measure`.
    counts: Mutex<[Option<Counts>; 2]>,
}

impl Load for TprocLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let rows = client.rows("SELECT COALESCE(MAX(w_id), 1) FROM warehouse")?;
        let present = number(&rows, 0).unwrap_or(1);
        let warehouses = self.warehouses.unwrap_or(present);
        let mut rng = Rng::new(self.seed, thread as u64);
        // The procedures draw items with RAND(), by the same seed.
        let (first, second) = (rng.uniform(1, 1 << 30), rng.uniform(1, 1 << 30));
        // Not again after a reconnect, or the same items would be ordered again.
        client.rows(&format!("SET rand_seed1={first}, rand_seed2={second}"))?;
        client.on_connect("SET autocommit=0")?;
        let prepared = self.mode == Mode::Prepared;
        if prepared {
            for sql in transactions::preparations() {
                client.on_connect(&sql)?;
            }
        }
        Ok(Box::new(TerminalSession {
            terminal: Terminal::new(thread, self.threads, warehouses, self.all, rng),
            prepared,
            pauses: self.pauses,
            thinking: 0.0,
        }))
    }

    fn operations_per_event(&self) -> f64 {
        // New orders in HammerDB's mix, including those rolled back.
        10.0 / 23.0
    }

    fn unseen(&self) -> &'static [&'static str] {
        &["writes", "rows"]
    }

    fn handles(&self, _: &protocol::Mode) -> usize {
        // The server counts statements prepared in SQL like those prepared by the protocol.
        match self.mode {
            Mode::Call => 0,
            Mode::Prepared => TYPES.len(),
        }
    }

    fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        lock(&self.counts)[usize::from(moment == Moment::After)] = Some(Counts::read(connection)?);
        Ok(())
    }

    /// HammerDB's NOPM and TPM over the exact length of the measurement; HammerDB divides by whole
    /// minutes.
    fn details(&self, seconds: f64, restarted: bool) -> Map<String, Json> {
        let [before, after] = *lock(&self.counts);
        let per_minute = |count: fn(Counts) -> u64| {
            let growth = count(after?).checked_sub(count(before?))?;
            Some(growth as f64 * 60.0 / seconds)
        };
        // The counters began again.
        let transactions = per_minute(|counts| counts.transactions).filter(|_| !restarted);
        let used = self.warehouses.and_then(|used| u64::try_from(used).ok());
        let present = before.unwrap_or_default().warehouses;
        let details = [
            ("nopm", json!(per_minute(|counts| counts.orders))),
            ("tpm", json!(transactions)),
            ("warehouses", json!(used.unwrap_or(present))),
            ("tproc_mode", json!(self.mode)),
        ];
        details
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}
