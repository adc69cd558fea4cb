//! The verb `run`: every number of `--threads` with every point of the workload, one run after the other, and a table of them.

use std::path::Path;

use anyhow::Result;
use anyhow::bail;
use serde_json::Value as Json;

use super::driver_of;
use super::plan::plan;
use super::run::Ended;
use super::run::Invocation;
use crate::driver::mysql::MysqlDriver;
use crate::driver::watchdog::Watchdog;
use crate::engine::Plan;
use crate::engine::interrupts::Interrupts;
use crate::external;
use crate::external::Guest;
use crate::external::Job;
use crate::external::Run as GuestRun;
use crate::options::Values;
use crate::output::Output;
use crate::recording;
use crate::report;
use crate::verb::Verb;
use crate::workload::Workload;

/// One of the runs.
struct Planned {
    /// Empty if it is the only one.
    name: String,
    values: Values,
}

/// Runs all points in their order; the first one that fails or is interrupted is the last one.
///
/// # Errors
/// One line, also for a run that failed after its results were written.
pub fn run(
    workload: &dyn Workload,
    values: &Values,
    seed: u64,
    output: &Output,
    (interrupts, watchdog): (&Interrupts, &Watchdog),
) -> Result<u8> {
    let points = planned(workload, values)?;
    refuse_results(&points)?;
    let several = points.len() > 1;
    let mut results = Vec::new();
    let mut status = Ok(0);
    for (number, point) in (1..).zip(&points) {
        if several {
            output.line(&format!("\nPoint {number} of {}: {}", points.len(), point.name));
        }
        let ended = one(workload, point, seed, output, (interrupts, watchdog));
        results.extend(ended.result);
        status = match ended.status {
            Err(error) if several => Err(error.context(format!("point {}", point.name))),
            other => other,
        };
        if !matches!(status, Ok(0)) {
            break;
        }
    }
    if several && !results.is_empty() {
        output.line(&format!("\n{}", report::points_table(&results)));
    }
    if values.text("format")? == Some("json") && !results.is_empty() {
        let json = if several {
            Json::from(results)
        } else {
            results.remove(0)
        };
        Output::default().line(&format!("{json:#}"));
    }
    status
}

fn one(
    workload: &dyn Workload,
    point: &Planned,
    seed: u64,
    output: &Output,
    (interrupts, watchdog): (&Interrupts, &Watchdog),
) -> Ended {
    let values = &point.values;
    let of_options =
        driver_of(Verb::Run, workload, values, watchdog).and_then(|driver| Ok((driver, plan(values, seed)?)));
    let of_guest = of_options.and_then(|(driver, plan)| {
        let guest = external::chosen(workload.descriptor().name, values)?;
        Ok((driver, plan, guest))
    });
    match of_guest {
        Ok((driver, plan, Some(guest))) => with_guest(guest, workload, point, seed, output, (&driver, &plan)),
        Ok((driver, plan, None)) => Invocation {
            point: &point.name,
            workload,
            values,
            driver: &driver,
            seed,
            plan,
            output,
            interrupts,
        }
        .run(),
        Err(error) => Ended {
            result: None,
            status: Err(error),
        },
    }
}

/// The same by another generator, whose process gets the signals from its own part.
fn with_guest(
    guest: &dyn Guest,
    workload: &dyn Workload,
    point: &Planned,
    seed: u64,
    output: &Output,
    (driver, plan): (&MysqlDriver, &Plan),
) -> Ended {
    let seed = match guest.seed(&point.values, seed) {
        Ok(seed) => seed,
        Err(error) => {
            return Ended {
                result: None,
                status: Err(error),
            };
        }
    };
    let job = Job {
        workload,
        values: &point.values,
        account: &driver.account,
        threads: plan.threads,
        seed,
        output,
    };
    let point = &point.name;
    let (result, status) = GuestRun {
        point,
        guest,
        job: &job,
        driver,
    }
    .run();
    Ended { result, status }
}

/// Threads outside, points inside, so that the steps of a benchmark follow each other.
fn planned(workload: &dyn Workload, values: &Values) -> Result<Vec<Planned>> {
    let threads = values.ints("threads")?;
    let mut all: Vec<Planned> = Vec::new();
    for count in &threads {
        let values = values.with(&[("threads", count.to_string())])?;
        for point in workload.points(&values)? {
            let parts = [
                (threads.len() > 1).then(|| format!("t{count}")),
                Some(point.name).filter(|name| !name.is_empty()),
            ];
            let name = parts.into_iter().flatten().collect::<Vec<_>>().join("-");
            if all.iter().any(|other| other.name == name) {
                bail!("point `{name}` twice: give each number of --threads once");
            }
            all.push(Planned {
                name,
                values: values.with(&point.options)?,
            });
        }
    }
    if let [single] = all.as_mut_slice() {
        single.name.clear();
    } else if let Some(out) = values.text("out")? {
        for point in &mut all {
            let directory = Path::new(out).join(&point.name).display().to_string();
            point.values = point.values.with(&[("out", directory)])?;
        }
    }
    Ok(all)
}

/// Before the first point runs: the last one would be a late moment to find out.
fn refuse_results(points: &[Planned]) -> Result<()> {
    for point in points {
        if let Some(out) = point.values.text("out")? {
            recording::refuse_results(Path::new(out))?;
        }
    }
    Ok(())
}
