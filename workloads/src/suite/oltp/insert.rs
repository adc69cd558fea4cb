//! The script oltp_insert: one row per event, as text with every protocol.

use std::io::Write;

use anyhow::Result;

use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Keys;
use crate::random::Rng;
use crate::random::Unique;

/// The script with its options.
#[derive(Debug)]
pub struct Inserts {
    tables: i64,
    keys: Keys,
    unique: bool,
    /// Of all parts.
    threads: usize,
    seed: u64,
}

impl Inserts {
    /// By the options.
    pub fn new(distribution: Distribution, values: &Values, threads: usize, seed: u64) -> Result<Self> {
        Ok(Self {
            tables: values.int("tables")?,
            keys: distribution.over(1, values.int("table-size")?),
            unique: !values.flag("auto-inc")?,
            threads,
            seed,
        })
    }
}

impl Load for Inserts {
    fn session(&self, thread: usize, _client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        Ok(Box::new(InsertSession {
            tables: self.tables,
            keys: self.keys,
            ids: self.unique.then(|| Unique::new(self.seed, thread, self.threads)),
            rng: Rng::new(self.seed, thread as u64),
            text: Vec::with_capacity(320),
            c: [0; 119],
            pad: [0; 59],
        }))
    }
}

struct InsertSession {
    tables: i64,
    keys: Keys,
    /// None: the statement contains 0 and the server assigns the id.
    ids: Option<Unique>,
    rng: Rng,
    text: Vec<u8>,
    c: [u8; 119],
    pad: [u8; 59],
}

impl Session for InsertSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let table = self.rng.uniform(1, self.tables);
        let k = self.keys.draw(&mut self.rng);
        self.rng.digits(&mut self.c);
        self.rng.digits(&mut self.pad);
        // Maps 32-bit numbers to the signed INT, as sysbench does.
        let id = self
            .ids
            .as_mut()
            .map_or(0, |ids| i64::from(ids.draw()) - (1 << 31));
        self.text.clear();
        // Writing to a Vec cannot fail.
        drop(write!(
            self.text,
            "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, {k}, '"
        ));
        self.text.extend_from_slice(&self.c);
        self.text.extend_from_slice(b"', '");
        self.text.extend_from_slice(&self.pad);
        self.text.extend_from_slice(b"')");
        client.query(&self.text)?;
        Ok(Step::Done(1))
    }
}
