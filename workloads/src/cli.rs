//! Parses the command line: builds clap commands from the verbs, the workloads and their option
//! tables, and reduces usage errors to one line. Clap's derive cannot replace the tables: each
//! workload declares its own, and they also give the recorded options.

mod usage_error;

use anyhow::Result;
use anyhow::anyhow;
use anyhow::bail;
use clap::Arg;
use clap::ArgAction;
use clap::ArgMatches;
use clap::Command;
use clap::error::ErrorKind;

use crate::options::COMMON;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::registry;
use crate::registry::WORKLOADS;
use crate::verb::VERBS;
use crate::verb::Verb;
use crate::workload::Workload;
use usage_error::one_line;

const OPTIONS: (&str, &str) = (
    "options",
    "Check the options of a run without a server, and print all with their values",
);

const EXAMPLES: &str = "Examples:
  loadprint-load prepare oltp_read_write --defaults-file=my.cnf --tables=4 --table-size=100000 --threads=4
  loadprint-load run oltp_read_write --defaults-file=my.cnf --tables=4 --table-size=100000 --threads=4 --warmup-time=10 --time=60 --out=runs/a
  loadprint-load run arm_insert --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=arm --scenario=ctx5 --threads=8 --time=30
  loadprint-load help arm_insert

Option names are those of sysbench; `_` may be used in place of `-`.
Exit status: 0 success, 1 broken rule (check), 2 error or failed run, 130 or 143 interrupted.";

/// A parsed command line.
pub enum Invocation {
    /// Print this text.
    Print(String),
    /// List the workloads.
    List {
        /// Print JSON.
        json: bool,
    },
    /// Check these options of a run, and print them.
    Options(&'static dyn Workload, Box<Values>),
    /// Run a verb on a workload.
    Verb(Verb, &'static dyn Workload, Box<Values>),
}

/// Parses the arguments without the program name.
///
/// # Errors
/// One line: the mistake and the most similar valid name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Invocation> {
    let arguments: Vec<String> = arguments.map(hyphens).collect();
    let names_password = |argument: &&String| argument.split('=').next() == Some("--mysql-password");
    if arguments.iter().any(|argument| names_password(&argument)) {
        bail!(
            "--mysql-password is refused: every user of this host could read the password; \
             use --mysql-password-file, --defaults-file or the environment variable MYSQL_PWD"
        );
    }
    let command = command();
    let program = [String::from("loadprint-load")];
    let matches = match command
        .clone()
        .try_get_matches_from(program.into_iter().chain(arguments))
    {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Invocation::Print(error.render().to_string()));
        }
        Err(error) => return Err(one_line(&error, &names())),
    };
    match matches.subcommand() {
        Some(("list", matches)) => Ok(Invocation::List {
            json: matches
                .get_one::<String>("format")
                .is_some_and(|format| format == "json"),
        }),
        Some(("help", matches)) => help(command, matches.get_one::<String>("workload")),
        Some((verb, matches)) => parse_verb(verb, matches),
        None => bail!("the verb is missing: give list, options, prepare, warmup, run, check or cleanup"),
    }
}

/// Replaces `_` by `-` in option names.
fn hyphens(argument: String) -> String {
    if !argument.starts_with("--") {
        return argument;
    }
    match argument.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.replace('_', "-")),
        None => argument.replace('_', "-"),
    }
}

fn parse_verb(name: &str, matches: &ArgMatches) -> Result<Invocation> {
    let verb = VERBS.iter().find(|verb| verb.1 == name);
    let Some((name, matches)) = matches.subcommand() else {
        bail!("the workload is missing: give one of {}", names());
    };
    let workload =
        registry::find(name).ok_or_else(|| anyhow!("unknown workload `{name}`: give one of {}", names()))?;
    let mut values = Values::default();
    for spec in specs(workload) {
        values.add(spec, matches.get_one::<String>(spec.name).map(String::as_str))?;
    }
    let values = Box::new(values);
    Ok(match verb {
        Some((verb, ..)) => Invocation::Verb(*verb, workload, values),
        None => Invocation::Options(workload, values),
    })
}

/// All options of a workload.
pub fn specs(workload: &dyn Workload) -> impl Iterator<Item = &OptionSpec> {
    let own = workload.descriptor().options.iter().copied();
    own.chain([COMMON]).flatten()
}

fn names() -> String {
    let names: Vec<&str> = WORKLOADS
        .iter()
        .map(|workload| workload.descriptor().name)
        .collect();
    names.join(", ")
}

fn help(command: Command, name: Option<&String>) -> Result<Invocation> {
    let mut command = command;
    let Some(name) = name else {
        return Ok(Invocation::Print(command.render_long_help().to_string()));
    };
    command.build();
    let workload = command
        .find_subcommand_mut("run")
        .and_then(|run| run.find_subcommand_mut(name));
    match workload {
        Some(workload) => Ok(Invocation::Print(workload.render_help().to_string())),
        None => bail!("unknown workload `{name}`: give one of {}", names()),
    }
}

fn command() -> Command {
    let mut command = Command::new("loadprint-load")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs database workloads on MySQL and MariaDB and records throughput and latency")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("list")
                .about("List the workloads and their operations")
                .arg(Arg::new("format").long("format").value_parser(["text", "json"])),
        )
        .subcommand(
            Command::new("help")
                .about("Show this help, or the options of a workload")
                .arg(Arg::new("workload").value_name("WORKLOAD")),
        );
    let verbs = VERBS.map(|(_, name, about)| (name, about));
    for (verb, about) in verbs.into_iter().chain([OPTIONS]) {
        let mut verb_command = Command::new(verb)
            .about(about)
            .subcommand_required(true)
            .subcommand_value_name("WORKLOAD")
            .subcommand_help_heading("Workloads")
            .after_help("Options of a workload: loadprint-load help WORKLOAD")
            .disable_help_subcommand(true);
        if verb == "warmup" {
            verb_command = verb_command.alias("prewarm");
        }
        for workload in WORKLOADS {
            let descriptor = workload.descriptor();
            let about = format!("{}\nOperation: {}", descriptor.summary, descriptor.operation);
            let workload_command = Command::new(descriptor.name)
                .about(descriptor.summary)
                .long_about(about);
            verb_command = verb_command.subcommand(workload_command.args(specs(*workload).map(argument)));
        }
        command = command.subcommand(verb_command);
    }
    command
}

fn argument(spec: &OptionSpec) -> Arg {
    let mut help = spec.help.to_owned();
    if let Kind::Choice(words) = spec.kind {
        help = format!("{help} [{}]", words.join(", "));
    }
    if let Some(default) = spec.default {
        help = format!("{help} [default: {default}]");
    }
    let argument = Arg::new(spec.name)
        .long(spec.name)
        .action(ArgAction::Set)
        .help(help)
        .overrides_with(spec.name);
    let heading = if COMMON.iter().any(|common| common.name == spec.name) {
        "Common options"
    } else {
        "Workload options"
    };
    let argument = argument.help_heading(heading);
    match spec.kind {
        Kind::Flag => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("on")
            .value_name("on|off"),
        Kind::Choice(_) => argument.value_name("NAME"),
        Kind::Int(..) => argument.value_name("N"),
        Kind::Ints(..) => argument.value_name("N[,N...]"),
        Kind::Number(..) => argument.value_name("X"),
        Kind::Duration => argument.value_name("SECONDS"),
        Kind::Text(word) => argument.value_name(word),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_words(words: &str) -> Result<Invocation> {
        parse(words.split(' ').map(str::to_owned))
    }

    fn refusal(words: &str) -> String {
        match parse_words(words) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{words} was accepted"),
        }
    }

    #[test]
    fn names_take_underscores_and_bare_flags_mean_on() {
        let parsed =
            parse_words("run oltp_read_write --table_size=77 --skip-trx --threads 3 --mysql-ssl=REQUIRED")
                .unwrap();
        let Invocation::Verb(verb, workload, values) = parsed else {
            panic!("no verb")
        };
        assert_eq!((verb, workload.descriptor().name), (Verb::Run, "oltp_read_write"));
        let values = values.to_json();
        assert_eq!(
            (&values["table-size"], &values["threads"]),
            (&json!(77), &json!(3))
        );
        assert_eq!(values["mysql-ssl"], "required");
        assert_eq!(
            (&values["skip-trx"], &values["auto-inc"]),
            (&json!(true), &json!(true))
        );
    }

    #[test]
    fn usage_errors_are_one_line_with_the_most_similar_name() {
        for (words, part) in [
            ("run oltp_read_wite", "did you mean `oltp_read_write`?"),
            ("rum oltp_read_write", "did you mean `run`?"),
            ("run oltp_read_write --tabels=4", "did you mean `--tables`?"),
            (
                "run oltp_read_write --threads=0",
                "--threads=0 is not a whole number from 1 to 10000",
            ),
            ("run arm_insert --arm-mode=rows", "is not one of multi, row"),
            (
                "run oltp_read_write --num-threads=4",
                "sysbench's option `--num-threads` is not supported: use --threads",
            ),
            ("run oltp_read_write --report_checkpoints=5", "--warmup-time"),
            ("run", "the workloads are oltp_read_write"),
            (
                "run oltp_read_write --mysql-password=word",
                "--mysql-password-file",
            ),
        ] {
            let line = refusal(words);
            assert!(line.contains(part) && !line.contains('\n'), "{words}: {line}");
            assert!(!line.contains("=word"), "{line}");
        }
    }

    #[test]
    fn options_are_checked_as_a_run_does_and_printed() {
        let options = |words: &str| {
            let Invocation::Options(workload, values) = parse_words(words)? else {
                bail!("another verb")
            };
            crate::verbs::options(workload, &values)
        };
        let text = options("options oltp_insert --auto-inc=False --threads=1,2 --time=90s").unwrap();
        for line in ["--auto-inc=off", "--threads=1,2", "--time=90", "--tables=1"] {
            assert!(
                text.lines().any(|printed| printed == line),
                "{line} is not in {text}"
            );
        }
        assert!(!text.contains("mysql-host"));
        for (words, part) in [
            (
                "arm_insert --scenario=ctx99",
                "--scenario=ctx99: `ctx99` is not a scenario",
            ),
            (
                "arm_insert --metrics=1",
                "--metrics applies to the scenario custom only",
            ),
            (
                "select_random_points --tables=2",
                "--tables=2: select_random_points uses one table",
            ),
            (
                "oltp_read_only --mysql-ignore-errors=x",
                "--mysql-ignore-errors=x",
            ),
            ("command", "--command is missing"),
            ("command --command=x", "the source of operations is missing"),
            (
                "tproc_c --generator=hammerdb --rate=9",
                "HammerDB does not support --rate",
            ),
            (
                "oltp_read_only --threads=2,2",
                "--threads: point `t2` occurs twice",
            ),
            ("oltp_read_only --forced-shutdown=soon", "--forced-shutdown=soon"),
        ] {
            let error = format!("{:#}", options(&format!("options {words}")).unwrap_err());
            assert!(error.contains(part), "{words}: {error}");
        }
    }

    #[test]
    fn the_command_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn help_shows_the_options_of_a_workload() {
        let Ok(Invocation::Print(text)) = parse_words("help arm_insert") else {
            panic!("no help")
        };
        assert!(
            text.contains("--scenario")
                && text.contains("--mysql-socket")
                && !text.contains("--point-selects")
        );
    }
}
