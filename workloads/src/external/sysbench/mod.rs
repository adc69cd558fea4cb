//! Runs sysbench 1.0.20 or 1.1.

mod arguments;
mod installation;
mod report;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use anyhow::bail;

use super::ExternalGenerator;
use super::Job;
use super::account;
use super::account::PrivateDir;
use super::child::Child;
use super::program::Program;
use super::program::Schedule;
use crate::options::Common;
use crate::options::Values;
use crate::options::options;
use crate::verb::Verb;
use installation::SysbenchInstallation;
use report::Report;

options! {
    /// Options of the workloads that are Lua scripts of sysbench too.
    pub OPTIONS, Options;
    #[expect(dead_code, reason = "external::selected reads it")]
    generator: String = Choice(&["native", "sysbench"])
        .default("native")
        .help("native, or an external program in its place"),
    sysbench_path: Option<PathBuf> = Text("FILE")
        .help("sysbench: path of the program [default: sysbench in PATH]"),
    sysbench_scripts: Option<String> = Text("DIR")
        .help("sysbench: directory of its Lua scripts [default: its own]"),
}

/// The generator.
pub struct Sysbench;

impl ExternalGenerator for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn needs_database(&self) -> bool {
        true
    }

    fn seed(&self, values: &Values, seed: u64) -> Result<u64> {
        const MAX_SEED: u64 = i32::MAX as u64;
        if values.read::<Common>()?.rand_seed == 0 {
            return Ok(seed & MAX_SEED | 1);
        }
        if seed > MAX_SEED {
            bail!("--rand-seed={seed}: sysbench supports seeds up to {MAX_SEED}");
        }
        Ok(seed)
    }

    fn start(&self, verb: Verb, job: &Job<'_>) -> Result<Option<Program>> {
        let values = job.values;
        let name = job.workload.descriptor().name;
        let own: Options = values.read()?;
        let script = match own.sysbench_scripts {
            Some(dir) => format!("{dir}/{name}.lua"),
            None => name.to_owned(),
        };
        let program = own.sysbench_path.unwrap_or_else(|| PathBuf::from("sysbench"));
        let installation = SysbenchInstallation::detect(&program, &script)?;
        let account = account::resolve(job.account)?;
        account.require_trusted_network("sysbench")?;
        let mut arguments = arguments::common(&installation, values, &account, job.threads)?;
        let mut report = Report::new(match verb {
            Verb::Prepare => "prepare",
            // The older name, which both versions have.
            Verb::Warmup => "prewarm",
            Verb::Run => "run",
            _ => "cleanup",
        });
        let mut schedule = Schedule::default();
        if verb == Verb::Run {
            arguments.extend(arguments::run(&installation, values, job.seed)?);
            report.read_options(&installation, job)?;
            schedule.limit = report.limit;
        }
        let private = PrivateDir::create()?;
        let file = private.write("sysbench.cnf", &arguments::password_line(&account.password)?)?;
        let mut command = Command::new(&installation.program);
        command
            .arg(format!("--config-file={}", file.display()))
            .arg(&script)
            .args(&arguments)
            .arg(report.verb);
        Ok(Some(Program {
            child: Child::start(command)?,
            _private: private,
            schedule,
            reader: Box::new(report),
        }))
    }
}
