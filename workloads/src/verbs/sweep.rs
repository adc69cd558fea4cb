//! Runs every combination of `--threads` and points, one after the other, and prints their table.

use anyhow::Result;
use anyhow::bail;
use serde_json::Value as Json;

use super::driver_of;
use super::plan::plan;
use super::run::NativeRun;
use crate::driver::watchdog::Watchdog;
use crate::engine::interrupts::Interrupts;
use crate::external;
use crate::external::ExternalRun;
use crate::external::Job;
use crate::options::Common;
use crate::options::Values;
use crate::output::Output;
use crate::report;
use crate::verb::Verb;
use crate::workload::Workload;

/// One of the runs.
pub struct PlannedRun {
    /// Empty if the command has one run.
    name: String,
    /// Its options, of which `threads` is one number.
    pub values: Values,
}

/// Runs all points in order; stops at the first one that fails or is interrupted.
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
    let points = planned_runs(workload, values)?;
    refuse_results(&points)?;
    let several = points.len() > 1;
    let mut results = Vec::new();
    let mut status = Ok(0);
    for (number, point) in (1..).zip(&points) {
        if several {
            output.line(&format!("\nPoint {number} of {}: {}", points.len(), point.name));
        }
        let mut result = None;
        let ended = run_point(workload, point, seed, output, (interrupts, watchdog), &mut result);
        results.extend(result);
        status = match ended {
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
    if values.read::<Common>()?.format == "json" && !results.is_empty() {
        let json = if several {
            Json::from(results)
        } else {
            results.remove(0)
        };
        Output::default().line(&format!("{json:#}"));
    }
    status
}

fn run_point(
    workload: &dyn Workload,
    point: &PlannedRun,
    seed: u64,
    output: &Output,
    (interrupts, watchdog): (&Interrupts, &Watchdog),
    result: &mut Option<Json>,
) -> Result<u8> {
    let values = &point.values;
    let driver = driver_of(Verb::Run, workload, values, watchdog)?;
    let plan = plan(values, seed)?;
    let Some(generator) = external::selected(values)? else {
        let run = NativeRun {
            point: &point.name,
            workload,
            values,
            driver: &driver,
            seed,
            plan,
            output,
            interrupts,
        };
        return run.run(result);
    };
    // It handles signals itself.
    let job = Job {
        workload,
        values,
        account: &driver.account,
        threads: plan.threads,
        seed: generator.seed(values, seed)?,
        output,
    };
    let run = ExternalRun {
        point: &point.name,
        generator,
        job: &job,
        driver: &driver,
    };
    run.run(result)
}

/// The runs of these options; threads in the outer loop, so that the steps of a benchmark follow each other.
///
/// # Errors
/// A number of threads that is given twice.
pub fn planned_runs(workload: &dyn Workload, values: &Values) -> Result<Vec<PlannedRun>> {
    let Common { threads, out, .. } = values.read()?;
    let mut all: Vec<PlannedRun> = Vec::new();
    for count in &threads {
        let values = values.with(&[("threads", count.to_string())])?;
        for point in workload.points(&values)? {
            let parts = [
                (threads.len() > 1).then(|| format!("t{count}")),
                Some(point.name).filter(|name| !name.is_empty()),
            ];
            let name = parts.into_iter().flatten().collect::<Vec<_>>().join("-");
            if all.iter().any(|other| other.name == name) {
                bail!("--threads: point `{name}` occurs twice: give each number once");
            }
            all.push(PlannedRun {
                name,
                values: values.with(&point.options)?,
            });
        }
    }
    if let [single] = all.as_mut_slice() {
        single.name.clear();
    } else if let Some(out) = out {
        for point in &mut all {
            let directory = out.join(&point.name).display().to_string();
            point.values = point.values.with(&[("out", directory)])?;
        }
    }
    Ok(all)
}

/// Before the first point runs, refuses run directories that contain results, so that nothing is
/// overwritten.
fn refuse_results(points: &[PlannedRun]) -> Result<()> {
    for point in points {
        let out = point.values.read::<Common>()?.out;
        let result = out.map(|out| out.join("load/result.json"));
        if let Some(result) = result.filter(|result| result.exists()) {
            bail!(
                "{}: the result exists already: give a new directory in --out",
                result.display()
            );
        }
    }
    Ok(())
}
