//! The script oltp_insert: one row per event, as text with every protocol.

use std::io::Write;

use anyhow::Result;

use super::sessions;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::random::Keys;
use crate::random::Rng;
use crate::random::Unique;
use crate::suite::sbtest::Tables;

/// By the options.
pub fn load(keys: Keys, options: &Tables, threads: usize, seed: u64) -> Box<dyn Load> {
    let (tables, unique) = (options.tables as i64, !options.auto_inc);
    sessions(0, move |thread, _| {
        Ok(Box::new(InsertSession {
            tables,
            keys,
            ids: unique.then(|| Unique::new(seed, thread, threads)),
            rng: Rng::new(seed, thread as u64),
            text: Vec::with_capacity(320),
            c: [0; 119],
            pad: [0; 59],
        }))
    })
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
        for piece in [self.c.as_slice(), b"', '", &self.pad, b"')"] {
            self.text.extend_from_slice(piece);
        }
        client.query(&self.text)?;
        Ok(Step::Done(1))
    }
}
