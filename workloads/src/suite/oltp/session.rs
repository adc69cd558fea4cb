//! The session of a script of statement groups: prepares the statements for each table and runs
//! events.

use super::scripts::MAX_PARAMS;
use super::scripts::Param;
use super::scripts::Statement;
use super::sessions;
use crate::driver::DbError;
use crate::driver::ParamType;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::engine::client::Client;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::random::Keys;
use crate::random::Rng;

/// The statements of an event: groups with their number of repetitions, in a transaction or
/// autocommitted; `reach` is the distance from an id to the last one of its range.
pub struct Script {
    pub groups: Vec<(usize, &'static [Statement])>,
    pub transaction: bool,
    pub reach: i64,
}

impl Script {
    /// Without a transaction and ranges.
    pub fn autocommitted(groups: Vec<(usize, &'static [Statement])>) -> Self {
        Self {
            groups,
            transaction: false,
            reach: 0,
        }
    }
}

/// The load of a script. Prepares each statement for each table: `tables × statements` handles, and
/// BEGIN and COMMIT of a transaction.
pub fn load(script: Script, tables: usize, keys: Keys, seed: u64) -> Box<dyn Load> {
    let Script {
        groups: used,
        transaction,
        reach,
    } = script;
    let statements = used.iter().flat_map(|(_, statements)| *statements);
    let handles = statements.count() * tables + if transaction { 2 } else { 0 };
    sessions(handles, move |thread, client| {
        let mut bracket = |sql| transaction.then(|| client.prepare(sql, &[])).transpose();
        let (begin, commit) = (bracket("BEGIN")?, bracket("COMMIT")?);
        let (mut groups, mut planned, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for (times, statements) in &used {
            for (sql, params) in *statements {
                let kinds: Vec<ParamType> = params.iter().map(|param| param.kind()).collect();
                planned.push(Planned::new(params, handles.len()));
                for table in 1..=tables {
                    handles.push(client.prepare(&sql.replace("%u", &table.to_string()), &kinds)?);
                }
            }
            groups.push(Repeated {
                times: *times as u32,
                end: planned.len() as u32,
            });
        }
        Ok(Box::new(GroupsSession {
            begin,
            commit,
            rng: Rng::new(seed, thread as u64),
            last_table: i64::try_from(tables).unwrap_or(i64::MAX) - 1,
            reach,
            keys,
            groups: groups.into(),
            statements: planned.into(),
            handles: handles.into(),
        }))
    })
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
    fn new(params: &[Param], handles: usize) -> Self {
        let mut padded = [Param::Id; MAX_PARAMS];
        padded[..params.len()].copy_from_slice(params);
        let uses = |param| params.contains(&param);
        Self {
            handles,
            params: padded,
            count: params.len() as u8,
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
