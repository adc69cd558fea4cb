//! One thread of a script of statement groups: its handles for each table, and the event.

use anyhow::Result;

use super::statements::Group;
use super::statements::MOST_PARAMS;
use super::statements::Param;
use super::statements::Statement;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Keys;
use crate::random::Rng;
use crate::workload::Load;
use crate::workload::Session;
use crate::workload::Step;

/// Groups of statements with the options fixed.
#[derive(Debug)]
pub struct Groups {
    /// How often, and what.
    groups: Vec<(usize, &'static [Statement])>,
    transaction: bool,
    tables: usize,
    /// From an id to the last of its range.
    reach: i64,
    keys: Keys,
    seed: u64,
}

impl Groups {
    /// Leaves out groups that the options turn off.
    ///
    /// # Errors
    /// If the workload does not declare an option.
    pub fn new(
        groups: &'static [Group],
        transaction: bool,
        distribution: Distribution,
        values: &Values,
        seed: u64,
    ) -> Result<Self> {
        let mut used = Vec::new();
        for group in groups {
            let times = group.repeat.times(values)?;
            if times > 0 {
                used.push((times, group.statements));
            }
        }
        let ranges = used.iter().flat_map(|(_, statements)| statements.iter());
        let ranges = ranges
            .flat_map(|statement| statement.params)
            .any(|param| *param == Param::LastId);
        Ok(Self {
            groups: used,
            transaction,
            tables: values.count("tables")?,
            reach: if ranges { values.int("range-size")? - 1 } else { 0 },
            keys: distribution.over(1, values.int("table-size")?),
            seed,
        })
    }
}

impl Load for Groups {
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let rng = Rng::new(self.seed, thread as u64);
        Ok(Box::new(GroupsSession::open(self, client, rng)?))
    }

    fn handles(&self) -> usize {
        let statements: usize = self.groups.iter().map(|(_, statements)| statements.len()).sum();
        statements * self.tables + if self.transaction { 2 } else { 0 }
    }
}

/// A statement of one connection: a handle for each table.
struct Prepared {
    by_table: Box<[StatementId]>,
    params: &'static [Param],
}

impl Prepared {
    fn new(client: &mut Client<'_>, statement: &Statement, tables: usize) -> Result<Self, DbError> {
        let kinds: Vec<ParamType> = statement.params.iter().map(|param| param.kind()).collect();
        let by_table: Result<_, DbError> = (1..=tables)
            .map(|table| client.prepare(&statement.on(table), &kinds))
            .collect();
        Ok(Self {
            by_table: by_table?,
            params: statement.params,
        })
    }
}

struct GroupsSession {
    begin: Option<StatementId>,
    commit: Option<StatementId>,
    groups: Box<[(usize, Box<[Prepared]>)]>,
    last_table: i64,
    draw: Draw,
}

/// Random state, and buffers for what is drawn: an event allocates nothing.
struct Draw {
    rng: Rng,
    keys: Keys,
    reach: i64,
    id: i64,
    k: i64,
    c: [u8; 119],
    pad: [u8; 59],
}

impl Draw {
    /// The values of a statement; the id has been drawn.
    fn values(&mut self, params: &[Param]) -> [Value<'_>; MOST_PARAMS] {
        for param in params {
            match param {
                Param::Id | Param::LastId => {}
                Param::K => self.k = self.keys.draw(&mut self.rng),
                Param::C => self.rng.digits(&mut self.c),
                Param::Pad => self.rng.digits(&mut self.pad),
            }
        }
        let mut values = [Value::Null; MOST_PARAMS];
        for (value, param) in values.iter_mut().zip(params) {
            *value = match param {
                Param::Id => Value::Int(self.id),
                // The column is a signed INT.
                Param::LastId => Value::Int((self.id + self.reach).min(i64::from(i32::MAX))),
                Param::K => Value::Int(self.k),
                Param::C => Value::Bytes(&self.c),
                Param::Pad => Value::Bytes(&self.pad),
            };
        }
        values
    }
}

impl GroupsSession {
    /// Prepares a statement for each table and kind that is used: `tables × kinds + 2` handles.
    fn open(load: &Groups, client: &mut Client<'_>, rng: Rng) -> Result<Self, DbError> {
        let mut transaction = |sql| load.transaction.then(|| client.prepare(sql, &[])).transpose();
        let (begin, commit) = (transaction("BEGIN")?, transaction("COMMIT")?);
        let mut groups = Vec::new();
        for (times, statements) in &load.groups {
            let prepared: Result<_, DbError> = statements
                .iter()
                .map(|statement| Prepared::new(client, statement, load.tables))
                .collect();
            groups.push((*times, prepared?));
        }
        Ok(Self {
            begin,
            commit,
            groups: groups.into(),
            last_table: i64::try_from(load.tables).unwrap_or(i64::MAX) - 1,
            draw: Draw {
                rng,
                keys: load.keys,
                reach: load.reach,
                id: 0,
                k: 0,
                c: [0; 119],
                pad: [0; 59],
            },
        })
    }
}

impl Session for GroupsSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let draw = &mut self.draw;
        if let Some(begin) = self.begin {
            client.execute(begin, &[])?;
        }
        for (times, statements) in &self.groups {
            let table = draw.rng.uniform(0, self.last_table) as usize;
            for _ in 0..*times {
                draw.id = draw.keys.draw(&mut draw.rng);
                for statement in statements {
                    let values = draw.values(statement.params);
                    client.execute(statement.by_table[table], &values[..statement.params.len()])?;
                }
            }
        }
        if let Some(commit) = self.commit {
            client.commit(commit)?;
        }
        Ok(Step::Done(1))
    }
}
