//! The session of a script of statement groups: prepares the statements for each table and runs
//! events.

use anyhow::Result;

use super::statements::Group;
use super::statements::MAX_PARAMS;
use super::statements::Param;
use super::statements::Statement;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Keys;
use crate::random::Rng;

/// Groups of statements with their options.
#[derive(Debug)]
pub struct Groups {
    /// Repetitions and statements.
    groups: Vec<(usize, &'static [Statement])>,
    transaction: bool,
    tables: usize,
    /// Distance from an id to the last one of its range.
    reach: i64,
    keys: Keys,
    seed: u64,
}

impl Groups {
    /// Leaves out groups that the options disable.
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

/// A statement as an event reads it. The server evicts the caches between two events: the data of
/// an event are adjacent.
#[derive(Debug, Clone, Copy)]
struct Planned {
    /// Index of its first handle; there is one for each table.
    handles: usize,
    params: [Param; MAX_PARAMS],
    count: u8,
    k: bool,
    c: bool,
    pad: bool,
}

impl Planned {
    fn new(statement: &Statement, handles: usize) -> Self {
        let mut params = [Param::Id; MAX_PARAMS];
        for (place, param) in params.iter_mut().zip(statement.params) {
            *place = *param;
        }
        let uses = |param| statement.params.contains(&param);
        Self {
            handles,
            params,
            count: statement.params.len() as u8,
            k: uses(Param::K),
            c: uses(Param::C),
            pad: uses(Param::Pad),
        }
    }
}

/// Repetitions of the statements up to `end`.
#[derive(Debug, Clone, Copy)]
struct Repeated {
    times: u32,
    end: u32,
}

struct GroupsSession {
    begin: Option<StatementId>,
    commit: Option<StatementId>,
    rng: Rng,
    last_table: i64,
    reach: i64,
    keys: Keys,
    groups: Box<[Repeated]>,
    statements: Box<[Planned]>,
    handles: Box<[StatementId]>,
}

impl GroupsSession {
    /// Prepares each statement for each table: `tables × statements + 2` handles.
    fn open(load: &Groups, client: &mut Client<'_>, rng: Rng) -> Result<Self, DbError> {
        let mut transaction = |sql| load.transaction.then(|| client.prepare(sql, &[])).transpose();
        let (begin, commit) = (transaction("BEGIN")?, transaction("COMMIT")?);
        let (mut groups, mut planned, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for (times, statements) in &load.groups {
            for statement in *statements {
                let kinds: Vec<ParamType> = statement.params.iter().map(|param| param.kind()).collect();
                planned.push(Planned::new(statement, handles.len()));
                for table in 1..=load.tables {
                    handles.push(client.prepare(&statement.on(table), &kinds)?);
                }
            }
            groups.push(Repeated {
                times: *times as u32,
                end: planned.len() as u32,
            });
        }
        Ok(Self {
            begin,
            commit,
            rng,
            last_table: i64::try_from(load.tables).unwrap_or(i64::MAX) - 1,
            reach: load.reach,
            keys: load.keys,
            groups: groups.into(),
            statements: planned.into(),
            handles: handles.into(),
        })
    }
}

impl Session for GroupsSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        if let Some(begin) = self.begin {
            client.execute(begin, &[])?;
        }
        let (rng, keys) = (&mut self.rng, &self.keys);
        let (mut k, mut c, mut pad) = (0, [0; 119], [0; 59]);
        let mut first = 0;
        for group in &self.groups {
            let end = group.end as usize;
            let table = rng.uniform(0, self.last_table) as usize;
            for _ in 0..group.times {
                let id = keys.draw(rng);
                // The column is a signed INT.
                let last_id = (id + self.reach).min(i64::from(i32::MAX));
                for statement in &self.statements[first..end] {
                    if statement.k {
                        k = keys.draw(rng);
                    }
                    if statement.c {
                        rng.digits(&mut c);
                    }
                    if statement.pad {
                        rng.digits(&mut pad);
                    }
                    let values = statement.params.map(|param| match param {
                        Param::Id => Value::Int(id),
                        Param::LastId => Value::Int(last_id),
                        Param::K => Value::Int(k),
                        Param::C => Value::Bytes(&c),
                        Param::Pad => Value::Bytes(&pad),
                    });
                    let handle = self.handles[statement.handles + table];
                    client.execute(handle, &values[..usize::from(statement.count)])?;
                }
            }
            first = end;
        }
        if let Some(commit) = self.commit {
            client.commit(commit)?;
        }
        Ok(Step::Done(1))
    }
}
