//! Refuses options of a divided load that do not fit the verb, the workload or each other.

use anyhow::Result;
use anyhow::bail;

use crate::external;
use crate::options::Values;
use crate::share::Part;
use crate::verb::VERBS;
use crate::verb::Verb;
use crate::workload::Workload;

/// Refuses the options of a divided load in verbs that run once for all parts.
///
/// # Errors
/// The option.
pub fn refuse(verb: Verb, values: &Values) -> Result<()> {
    for option in ["part", "start-at"] {
        if values.given(option)? {
            let names = VERBS.iter().filter(|(other, ..)| *other == verb);
            let name = names.map(|(_, name, _)| *name).next().unwrap_or_default();
            bail!("--{option} applies to run only: run {name} once for all parts, without it");
        }
    }
    Ok(())
}

/// Checks the options of `run`, which makes this number of runs.
///
/// # Errors
/// Why the load cannot be divided or start at a given time.
pub fn check(workload: &dyn Workload, values: &Values, runs: usize) -> Result<()> {
    let part = Part::from_options(values)?;
    let option = match (part, values.given("start-at")?) {
        (Some(_), _) => "part",
        (None, true) => "start-at",
        (None, false) => return Ok(()),
    };
    let name = workload.descriptor().name;
    if part.is_some() && !workload.divides() {
        bail!("--part: {name} cannot be divided: run it with one process, without --part");
    }
    if let Some(generator) = external::selected(name, values)? {
        bail!(
            "--{option} is not supported with --generator={}: leave it out, or use the native generator",
            generator.name()
        );
    }
    if runs > 1 {
        bail!("--{option} needs a single run, and these options make {runs}: start a command for each run");
    }
    if part.is_none() {
        return Ok(());
    }
    if values.int("rand-seed")? == 0 {
        bail!(
            "--part needs --rand-seed: the same number, not 0, in all parts, so that they do not repeat each other"
        );
    }
    for option in ["check", "verify"] {
        if values.declares(option) && values.flag(option)? {
            bail!("--{option} reads the rows of all parts while they still run: leave it out with --part");
        }
    }
    Ok(())
}
