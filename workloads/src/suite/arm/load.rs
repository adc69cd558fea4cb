//! The load of `arm_insert`: sets up queue and writers by the options, and reports the details of the
//! result. A writer takes a buffer and stores it as one database transaction.

use std::sync::Arc;
use std::sync::Mutex;

use anyhow::Result;
use anyhow::bail;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use super::Ids;
use super::Mode;
use super::Options;
use super::queue::Queue;
use super::record::Buffer;
use super::record::Full;
use super::record::Source;
use super::scenario::Mix;
use super::statements::Prepared;
use super::statements::Texts;
use super::statements::handles;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::StatementId;
use crate::driver::protocol;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Moment;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::lock::lock;
use crate::options::Common;
use crate::options::Values;
use crate::random::Rng;
use crate::suite::number;

/// Buffers in the published study, which has a number of events.
const STUDY_BUFFERS: usize = 1024;
/// Separates the producer's random stream from those of the threads.
const PRODUCER_STREAM: u64 = 1 << 33;
/// Above this share of idle time the writers are not the bottleneck.
const IDLE_SHARE: f64 = 0.05;
/// A writer numbers its records from `thread << 40`, so that writers insert at different places of
/// the primary key.
const ID_BITS: u32 = 40;

/// Sums over all writers since the start of the phase, in addition to the engine's counters.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    records: u64,
    /// Rows in all tables.
    rows: u64,
    /// Statements, COMMIT included, of the transactions that were committed.
    statements: u64,
    commits: u64,
}

/// The state that the writers of a run share.
struct Shared {
    queue: Arc<Queue>,
    mix: Mix,
    mode: Mode,
    ids: Ids,
    /// Locked once per commit.
    sums: Mutex<Sums>,
}

/// The load.
pub struct ArmLoad {
    threads: usize,
    full: Full,
    buffers: usize,
    verify: bool,
    shared: Arc<Shared>,
    /// Rows in all tables before and after `measure`, with `--verify`.
    counted: Mutex<[Option<u64>; 2]>,
}

impl ArmLoad {
    /// By the options.
    pub fn new(values: &Values, threads: usize, seed: u64) -> Result<Self> {
        let mix = Mix::of(values)?;
        for option in ["parent", "metrics", "contexts"] {
            if values.given(option)? && !mix.scenarios().any(|scenario| scenario.name == "custom") {
                bail!(
                    "--{option} applies to the scenario custom only: add --scenario=custom, or custom to --mix"
                );
            }
        }
        let options: Options = values.read()?;
        let full = match options.records_per_commit {
            0 => Full::Bytes(options.arm_buffer_bytes),
            given => Full::Records(given),
        };
        let if_timed = 2 * threads;
        let buffers = match values.read::<Common>()?.events {
            0 => if_timed,
            _ => STUDY_BUFFERS,
        };
        let source = Source::new(mix.clone(), full, Rng::new(seed, PRODUCER_STREAM));
        Ok(Self {
            threads,
            full,
            buffers,
            verify: options.verify,
            shared: Arc::new(Shared {
                queue: Arc::new(Queue::new(source, buffers, if_timed)),
                mix,
                mode: options.arm_mode,
                ids: options.ids,
                sums: Mutex::default(),
            }),
            counted: Mutex::default(),
        })
    }

    /// Records of a buffer; the mean of the run where record sizes differ.
    fn records_per_commit(&self, sums: Sums) -> Json {
        let mix = &self.shared.mix;
        match self.full {
            Full::Records(records) => json!(records),
            Full::Bytes(bytes) if mix.scenarios().count() == 1 => {
                json!(((bytes as f64 / mix.record_bytes()) as usize).max(1))
            }
            Full::Bytes(_) => json!((sums.commits > 0).then(|| sums.records as f64 / sums.commits as f64)),
        }
    }
}

impl Load for ArmLoad {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Writer::open(shared, thread, client)?))
    }

    fn handles(&self, mode: &protocol::Mode) -> usize {
        // One for COMMIT.
        mode.handles(match self.shared.mode {
            Mode::Bulk => 1,
            own => 1 + handles(&self.shared.mix, own == Mode::Row),
        })
    }

    fn operations_per_event(&self) -> f64 {
        match self.full {
            Full::Records(records) => records as f64,
            Full::Bytes(bytes) => (bytes as f64 / self.shared.mix.record_bytes()).max(1.0),
        }
    }

    fn drains(&self) -> bool {
        true
    }

    fn begin(&self, events: Option<u64>) {
        *lock(&self.shared.sums) = Sums::default();
        Queue::start(&self.shared.queue, events);
    }

    fn stop(&self) {
        self.shared.queue.stop();
    }

    /// With `--verify` counts the rows of all tables, which scans an index of each.
    fn at_rest(&self, moment: Moment, connection: &mut dyn Connection) -> Result<(), DbError> {
        if self.verify {
            let rows = connection.rows(
                "SELECT (SELECT COUNT(*) FROM arm_tran) + (SELECT COUNT(*) FROM arm_metric) + (SELECT COUNT(*) FROM arm_ctx)",
            )?;
            lock(&self.counted)[usize::from(moment == Moment::After)] = number(&rows, 0);
        }
        Ok(())
    }

    fn details(&self, seconds: f64, _: bool) -> Map<String, Json> {
        let (shared, sums, waits) = (&self.shared, *lock(&self.shared.sums), self.shared.queue.waits());
        let per_second = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let (full_seconds, idle_seconds) = (waits.producer_ns as f64 / 1e9, waits.writers_ns as f64 / 1e9);
        let idle = idle_seconds > IDLE_SHARE * seconds * self.threads as f64;
        // Not bound when the producer waited too: then both sides waited for something else, such
        // as a long commit.
        let producer_waited = full_seconds > IDLE_SHARE * seconds;
        let mut details: Map<String, Json> = [
            ("scenario", json!(shared.mix.label)),
            ("arm_mode", json!(shared.mode)),
            ("ids", json!(shared.ids)),
            ("threads", json!(self.threads)),
            ("record_bytes", json!(shared.mix.record_bytes())),
            ("records_per_commit", self.records_per_commit(sums)),
            ("buffers", json!(self.buffers)),
            ("rows_per_second", json!(per_second(sums.rows))),
            ("statements_per_second", json!(per_second(sums.statements))),
            ("queue_full_seconds", json!(full_seconds)),
            ("writers_idle_seconds", json!(idle_seconds)),
            ("producer_bound", json!(idle && !producer_waited)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect();
        if let [Some(before), Some(after)] = *lock(&self.counted)
            && let Some(growth) = after.checked_sub(before)
        {
            details.insert("rows_counted".to_owned(), json!(growth));
            details.insert("verified".to_owned(), json!(growth == sums.rows));
        }
        details
    }
}

enum Statements {
    Prepared(Prepared),
    Texts(Texts),
}

/// An uncommitted buffer. After an ignored error it is written again with the same ids.
struct Taken {
    buffer: Buffer,
    first: i64,
    /// The connection was lost, perhaps after the server committed.
    in_doubt: bool,
}

/// Statements and position of one writer.
struct Writer {
    shared: Arc<Shared>,
    next_id: i64,
    statements: Statements,
    commit: StatementId,
    taken: Option<Taken>,
}

impl Writer {
    /// Prepares the statements of the mix and reads the first free id of this thread.
    fn open(shared: Arc<Shared>, thread: usize, client: &mut Client<'_>) -> Result<Self, DbError> {
        let first = (thread as i64) << ID_BITS;
        let last = first | ((1 << ID_BITS) - 1);
        let used = client.rows(&format!(
            "SELECT MAX(id) FROM arm_tran WHERE id BETWEEN {first} AND {last}"
        ))?;
        let server_ids = shared.ids == Ids::Server;
        let statements = match shared.mode {
            Mode::Bulk => Statements::Texts(Texts::open(client, server_ids)?),
            mode => Statements::Prepared(Prepared::open(
                client,
                &shared.mix,
                server_ids,
                mode == Mode::Row,
            )?),
        };
        let commit = client.prepare("COMMIT", &[])?;
        // After the SELECT, which would otherwise start a transaction until the first COMMIT.
        client.on_connect("SET autocommit=0")?;
        Ok(Self {
            shared,
            next_id: number(&used, 0).unwrap_or(first) + 1,
            statements,
            commit,
            taken: None,
        })
    }

    /// Writes and commits; returns the number of statements.
    fn store(&mut self, client: &mut Client<'_>, taken: &Taken) -> Result<u64, DbError> {
        if taken.in_doubt && self.committed(client, taken.first)? {
            client.committed();
            return Ok(0);
        }
        let statements = match &mut self.statements {
            Statements::Prepared(prepared) => prepared.store(client, &taken.buffer, taken.first)?,
            Statements::Texts(texts) => texts.store(client, &taken.buffer, taken.first)?,
        };
        client.commit(self.commit)?;
        Ok(statements + 1)
    }

    /// True if a buffer whose COMMIT got no reply is in the tables. Not known with ids of the
    /// server.
    fn committed(&self, client: &mut Client<'_>, first: i64) -> Result<bool, DbError> {
        if self.shared.ids == Ids::Server {
            return Ok(false);
        }
        let rows = client.rows(&format!("SELECT id FROM arm_tran WHERE id = {first}"))?;
        Ok(!rows.is_empty())
    }
}

impl Session for Writer {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let mut taken = match self.taken.take() {
            Some(again) => again,
            None => {
                let Some(buffer) = self.shared.queue.pop() else {
                    return Ok(Step::Exhausted);
                };
                client.start(0);
                let first = self.next_id;
                self.next_id += buffer.records.len() as i64;
                Taken {
                    buffer,
                    first,
                    in_doubt: false,
                }
            }
        };
        match self.store(client, &taken) {
            Ok(statements) => {
                let records = taken.buffer.records.len() as u64;
                let mut sums = lock(&self.shared.sums);
                sums.records += records;
                sums.rows += taken.buffer.rows() as u64;
                sums.statements += statements;
                sums.commits += 1;
                drop(sums);
                self.shared.queue.give_back(taken.buffer);
                Ok(Step::Done(records))
            }
            Err(error) => {
                taken.in_doubt |= error.connection_lost();
                self.taken = Some(taken);
                Err(error)
            }
        }
    }
}
