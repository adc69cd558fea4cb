//! Runs the verbs of the command line.

use std::fs::File;
use std::io::Read;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::DbError;
use crate::driver::Driver;
use crate::driver::connect::Account;
use crate::driver::mysql::MysqlDriver;
use crate::driver::protocol::Mode;
use crate::driver::watchdog::Watchdog;
use crate::engine::interrupts::Interrupts;
use crate::external;
use crate::options::Common;
use crate::options::Values;
use crate::options::as_argument;
use crate::output::Output;
use crate::registry::WORKLOADS;
use crate::verb::Verb;
use crate::workload::Finding;
use crate::workload::Setup;
use crate::workload::Workload;

mod limits;
mod plan;
mod run;
mod sweep;

/// Formats the list of workloads.
pub fn list(as_json: bool) -> String {
    if as_json {
        let entries: Vec<Json> = WORKLOADS
            .iter()
            .map(|workload| {
                let workload = workload.descriptor();
                json!({"name": workload.name, "summary": workload.summary, "operation": workload.operation, "types": workload.types,
                    "generators": external::generators(workload)})
            })
            .collect();
        return format!("{:#}", Json::from(entries));
    }
    let lines = WORKLOADS.iter().map(|workload| {
        let workload = workload.descriptor();
        format!(
            "{:<23}{}\n{:23}operation: {}\n{:23}generators: {}",
            workload.name,
            workload.summary,
            "",
            workload.operation,
            "",
            external::generators(workload).join(", ")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks the options as a run does, which then connects to the server; formats all with their values.
///
/// # Errors
/// One line: the first unusable option.
pub fn options(workload: &dyn Workload, values: &Values) -> Result<String> {
    let common: Common = values.read()?;
    let seed = seed(common.rand_seed)?;
    plan::ignored(&common.mysql_ignore_errors)?;
    for point in sweep::planned_runs(workload, values)? {
        let plan = plan::plan(&point.values, seed)?;
        Mode::from_options(&point.values, workload.protocol())?;
        match external::selected(&point.values)? {
            Some(generator) => generator.check(&point.values)?,
            None => drop(workload.load(&point.values, plan.threads, seed)?),
        }
    }
    let all = values.to_json();
    if common.format == "json" {
        return Ok(format!("{:#}", Json::from(all)));
    }
    let lines = all
        .iter()
        .filter_map(|(name, value)| Some(format!("--{name}={}", as_argument(value)?)));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Runs a verb; returns the exit status.
///
/// # Errors
/// One line with the place and the hint.
pub fn run_verb(verb: Verb, workload: &dyn Workload, values: &Values) -> Result<u8> {
    let watchdog = Watchdog::start()?;
    if verb != Verb::Run {
        return run_with_interrupts(verb, workload, values, &watchdog, None);
    }
    let interrupts = Interrupts::install(&watchdog)?;
    let status = run_with_interrupts(verb, workload, values, &watchdog, Some(&interrupts));
    match (status, interrupts.ended_calls()) {
        (Err(_), Some(signal)) => {
            eprintln!("loadprint-load: interrupted by signal {signal} while the server did not answer");
            Ok(u8::try_from(128 + signal).unwrap_or(2))
        }
        (status, _) => status,
    }
}

fn run_with_interrupts(
    verb: Verb,
    workload: &dyn Workload,
    values: &Values,
    watchdog: &Watchdog,
    interrupts: Option<&Interrupts>,
) -> Result<u8> {
    let common: Common = values.read()?;
    let seed = seed(common.rand_seed)?;
    let output = Output::new(common.format == "json");
    if let Some(interrupts) = interrupts {
        let status = sweep::run(workload, values, seed, &output, (interrupts, watchdog))?;
        // Only workloads with rules declare the option.
        if status != 0 || values.to_json().get("check") != Some(&json!(true)) {
            return Ok(status);
        }
    }
    // `run` ends with the check, which reads whole tables.
    let verb_of_limit = if verb == Verb::Run { Verb::Check } else { verb };
    let driver = driver_of(verb_of_limit, workload, values, watchdog)?;
    let threads = common.threads.into_iter().max().unwrap_or(1);
    if verb != Verb::Check
        && let Some(generator) = external::selected(values)?
    {
        let job = external::Job {
            workload,
            values,
            account: &driver.account,
            threads,
            seed: generator.seed(values, seed)?,
            output: &output,
        };
        if verb == Verb::Prepare && generator.needs_database() {
            create_database(&driver).map_err(|error| driver.explain(error.into()))?;
        }
        if let Some(program) = generator.start(verb, &job)? {
            program.finish(&output)?;
        }
        return Ok(0);
    }
    let setup = Setup {
        driver: &driver,
        values,
        threads,
        seed,
        output: &output,
    };
    let status = match verb {
        Verb::Prepare => create_database(&driver)
            .map_err(anyhow::Error::from)
            .and_then(|()| workload.prepare(&setup))
            .map(|()| 0),
        Verb::Warmup => workload.warmup(&setup).map(|()| 0),
        Verb::Check => check(workload, &setup),
        Verb::Run => findings(workload, &setup).map(|findings| status_of(&findings)),
        Verb::Cleanup => workload.cleanup(&setup).map(|()| 0),
    };
    status.map_err(|error| driver.explain(error))
}

/// The driver with these options.
fn driver_of(
    verb: Verb,
    workload: &dyn Workload,
    values: &Values,
    watchdog: &Watchdog,
) -> Result<MysqlDriver> {
    let options: Common = values.read()?;
    let mut account = Account::from_options(&options)?;
    account
        .database
        .get_or_insert_with(|| workload.descriptor().database.to_owned());
    Ok(MysqlDriver {
        mode: Mode::from_options(values, workload.protocol())?,
        ignored: plan::ignored(&options.mysql_ignore_errors)?,
        read_timeout: plan::read_timeout(verb, &options),
        watchdog: watchdog.clone(),
        account,
    })
}

/// Prints the findings; returns exit status 1 if a rule is broken.
fn check(workload: &dyn Workload, setup: &Setup<'_>) -> Result<u8> {
    let findings = findings(workload, setup)?;
    let json: Vec<Json> = findings
        .iter()
        .map(|finding| json!({"rule": finding.rule, "holds": finding.broken.is_none(), "broken": finding.broken}))
        .collect();
    if setup.values.read::<Common>()?.format == "json" {
        Output::default().line(&format!("{:#}", Json::from(json)));
    }
    Ok(status_of(&findings))
}

/// Runs the check and prints a line per rule.
fn findings(workload: &dyn Workload, setup: &Setup<'_>) -> Result<Vec<Finding>> {
    let findings = workload.check(setup)?;
    if findings.is_empty() {
        bail!("{} has no rules to check", workload.descriptor().name);
    }
    for finding in &findings {
        setup.output.line(&match &finding.broken {
            None => format!("passes  {}", finding.rule),
            Some(place) => format!("BROKEN  {}: {place}", finding.rule),
        });
    }
    Ok(findings)
}

fn status_of(findings: &[Finding]) -> u8 {
    u8::from(findings.iter().any(|finding| finding.broken.is_some()))
}

/// Creates the database if it does not exist. An account without this privilege can use an existing
/// one.
fn create_database(driver: &MysqlDriver) -> Result<(), DbError> {
    match driver.connect() {
        Err(error) if error.failure().errno == 1049 => {
            let name = driver
                .account
                .database
                .as_deref()
                .unwrap_or_default()
                .replace('`', "``");
            let mut connection = driver.connect_without_database()?;
            connection.query(format!("CREATE DATABASE IF NOT EXISTS `{name}`").as_bytes())?;
            Ok(())
        }
        other => other.map(drop),
    }
}

fn seed(given: u64) -> Result<u64> {
    match given {
        0 => {
            let mut bytes = [0; 8];
            File::open("/dev/urandom")
                .and_then(|mut file| file.read_exact(&mut bytes))
                .context("/dev/urandom: give --rand-seed")?;
            // In the range of --rand-seed, so that the run can be repeated.
            Ok(u64::from_ne_bytes(bytes) >> 1 | 1)
        }
        given => Ok(given),
    }
}
