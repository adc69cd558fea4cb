//! Translates options into those of sysbench. Supported options are passed with the native
//! defaults, so that both generators run the same statements; options that sysbench does not
//! support are refused.

use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;

use super::super::account::ResolvedAccount;
use super::installation::SysbenchInstallation;
use crate::options::Common;
use crate::options::Values;
use crate::options::as_argument;

/// Options of this program only, or translated below.
const HANDLED: &[&str] = &[
    "compat",
    "db-ps-mode",
    "defaults-file",
    "events",
    "format",
    "generator",
    "histogram",
    "mysql-db",
    "mysql-get-server-public-key",
    "mysql-host",
    "mysql-ignore-errors",
    "mysql-password-file",
    "mysql-port",
    "mysql-server-public-key-path",
    "mysql-socket",
    "mysql-ssl",
    "mysql-ssl-ca",
    "mysql-ssl-cert",
    "mysql-ssl-key",
    "mysql-user",
    "out",
    "paused",
    "percentile",
    "protocol",
    "rand-seed",
    "rate",
    "report-interval",
    "sysbench-path",
    "sysbench-scripts",
    "threads",
    "time",
    "warmup-time",
];

/// Unless they are given, sysbench's own limits apply.
const LIMITS: &[&str] = &["forced-shutdown", "thread-init-timeout"];

/// Options of the workload and of the connection, for every verb.
///
/// # Errors
/// The first option or value that this sysbench does not support.
pub fn common(
    installation: &SysbenchInstallation,
    values: &Values,
    account: &ResolvedAccount,
    threads: usize,
) -> Result<Vec<String>> {
    let mut arguments = connection(account);
    arguments.push(format!("--threads={threads}"));
    for (name, value) in values.to_json() {
        if HANDLED.contains(&name.as_str()) || (LIMITS.contains(&name.as_str()) && !values.changed(&name)) {
            continue;
        }
        if !installation.has(&name) {
            if values.changed(&name) {
                bail!(installation.lacks(&format!("--{name} for this workload")));
            }
            continue;
        }
        let Some(text) = as_argument(&value) else { continue };
        let choices = installation.choices(&name);
        if name == "rand-type" && !choices.is_empty() && !choices.contains(&text.as_str()) {
            bail!(
                "sysbench {} does not support --rand-type={text}: give one of {}",
                installation.version,
                choices.join(", ")
            );
        }
        arguments.push(format!("--{name}={text}"));
    }
    arguments.extend(tls(installation, &account.tls)?);
    let given: Common = values.read()?;
    arguments.push(format!("--db-ps-mode={}", ps_mode(installation, &given)?));
    let ignored = given.mysql_ignore_errors.as_str();
    let ignored = if ignored == "none" { "" } else { ignored };
    arguments.push(format!("--mysql-ignore-errors={ignored}"));
    Ok(arguments)
}

/// The password is in the option file; the other values are not secret.
fn connection(account: &ResolvedAccount) -> Vec<String> {
    let mut arguments = vec!["--db-driver=mysql".to_owned()];
    let endpoint = &account.endpoint;
    match &endpoint.socket {
        Some(socket) => arguments.push(format!("--mysql-socket={socket}")),
        None => arguments.extend([
            format!("--mysql-host={}", endpoint.host),
            format!("--mysql-port={}", endpoint.port),
        ]),
    }
    arguments.push(format!("--mysql-user={}", account.user));
    arguments.push(format!("--mysql-db={}", account.database));
    arguments
}

/// The mode, a flag in 1.0 and in builds with MariaDB's library, and the files.
fn tls(installation: &SysbenchInstallation, tls: &Tls) -> Result<Vec<String>> {
    let mode = match (installation.is_switch("mysql-ssl"), tls.mode) {
        (false, mode) => mode.word().to_uppercase(),
        (true, SslMode::Disabled) => "off".to_owned(),
        (true, SslMode::Required) => "on".to_owned(),
        (true, mode) => bail!(installation.lacks(&format!("--mysql-ssl={}", mode.word()))),
    };
    let mut arguments = vec![format!("--mysql-ssl={mode}")];
    if tls.mode == SslMode::Disabled {
        return Ok(arguments);
    }
    for (name, file) in [
        ("mysql-ssl-ca", &tls.ca),
        ("mysql-ssl-cert", &tls.cert),
        ("mysql-ssl-key", &tls.key),
    ] {
        let Some(file) = file else { continue };
        if !installation.has(name) {
            bail!(installation.lacks(&format!("--{name}")));
        }
        arguments.push(format!("--{name}={file}"));
    }
    Ok(arguments)
}

fn ps_mode<'a>(installation: &SysbenchInstallation, given: &'a Common) -> Result<&'a str> {
    match given.protocol.as_str() {
        "auto" => Ok(&given.db_ps_mode),
        "ps" => Ok("auto"),
        "emulated" => Ok("disable"),
        other => bail!(
            "sysbench {} does not support --protocol={other}: give ps or emulated, or use --generator=native",
            installation.version
        ),
    }
}

/// Options of `run` in addition to [`common`].
///
/// # Errors
/// If a time is not in whole seconds, or a warm-up cannot be excluded from a number of events.
pub fn run(installation: &SysbenchInstallation, values: &Values, seed: u64) -> Result<Vec<String>> {
    let given: Common = values.read()?;
    let (warmup, time, events) = (warmup(&given)?, time(values)?, given.events);
    let mut arguments = vec![
        "--report-interval=1".to_owned(),
        format!("--percentile={}", given.percentile),
        format!("--histogram={}", if given.histogram { "on" } else { "off" }),
        format!("--events={events}"),
        format!("--rand-seed={seed}"),
    ];
    let rate = rate(&given)?;
    if rate > 0 {
        arguments.push(format!("--rate={rate}"));
    }
    if warmup == 0 {
        arguments.push(format!("--time={time}"));
    } else if installation.warms_up {
        arguments.extend([format!("--time={time}"), format!("--warmup-time={warmup}")]);
    } else if events > 0 {
        bail!(
            "sysbench {} includes the events of a warm-up in --events: give --time, or omit --warmup-time",
            installation.version
        );
    } else {
        let all = if time == 0 { 0 } else { warmup + time };
        arguments.extend([format!("--time={all}"), format!("--report-checkpoints={warmup}")]);
    }
    Ok(arguments)
}

/// Events per second; 0 for a closed loop.
pub fn rate(given: &Common) -> Result<u64> {
    let rate = given.rate;
    if rate.fract() != 0.0 {
        bail!("--rate={rate}: sysbench supports whole events per second only");
    }
    Ok(rate as u64)
}

/// Seconds of the run; 0 without a limit. As in a native run, the default of --time does not limit a
/// fixed number of events.
pub fn time(values: &Values) -> Result<u64> {
    let given: Common = values.read()?;
    if given.events == 0 || values.given("time")? {
        whole(given.time, "time")
    } else {
        Ok(0)
    }
}

/// Seconds of its warm-up; 0 if the run is paused between turns, of which sysbench is not informed.
pub fn warmup(given: &Common) -> Result<u64> {
    if given.paused {
        return Ok(0);
    }
    whole(given.warmup_time, "warmup-time")
}

fn whole(seconds: f64, name: &str) -> Result<u64> {
    if seconds.fract() != 0.0 {
        bail!("--{name}={seconds}: sysbench supports whole seconds only");
    }
    Ok(seconds as u64)
}

/// The password as a line of `--config-file`, which has quotes but no escapes (src/sb_options.c).
///
/// # Errors
/// If this syntax cannot represent the password.
pub fn password_line(password: &str) -> Result<String> {
    let mark = ['"', '\''].into_iter().find(|mark| !password.contains(*mark));
    match mark.filter(|_| !password.contains('\n')) {
        Some(mark) => Ok(format!("mysql-password={mark}{password}{mark}\n")),
        None => bail!(
            "the password contains both kinds of quotes or a newline, which sysbench's option file cannot represent: use another account"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::driver::endpoint::Endpoint;
    use crate::options::COMMON;
    use crate::options::OptionSpec;
    use crate::suite::oltp::scripts::READ_WRITE;
    use crate::workload::Workload;

    fn values(given: &[(&str, &str)]) -> Values {
        let own = READ_WRITE.descriptor().options.iter().copied();
        let tables: Vec<&[OptionSpec]> = own.chain([COMMON]).collect();
        Values::defaults(&tables, given)
    }

    fn account() -> ResolvedAccount {
        ResolvedAccount {
            endpoint: Endpoint {
                host: "db.example".to_owned(),
                port: 3307,
                socket: None,
            },
            password: "not-to-be-seen".to_owned(),
            ..ResolvedAccount::default()
        }
    }

    fn of(given: &[(&str, &str)]) -> Result<Vec<String>> {
        let real = SysbenchInstallation::detect(Path::new("sysbench"), "oltp_read_write")?;
        let mut arguments = common(&real, &values(given), &account(), 4)?;
        arguments.extend(run(&real, &values(given), 7)?);
        Ok(arguments)
    }

    #[test]
    fn defaults_are_passed_and_the_password_is_not() {
        let arguments = of(&[("rand-type", "pareto"), ("time", "60")]).unwrap();
        for wanted in [
            "--rand-type=pareto",
            "--table-size=10000",
            "--range-selects=on",
            "--skip-trx=off",
            "--mysql-port=3307",
            "--threads=4",
            "--mysql-ssl=off",
            "--db-ps-mode=auto",
            "--mysql-ignore-errors=1213,1020,1205",
            "--time=60",
            "--rand-seed=7",
            "--report-interval=1",
        ] {
            assert!(
                arguments.iter().any(|argument| argument == wanted),
                "{wanted} is not in {arguments:?}"
            );
        }
        assert!(!arguments.concat().contains("not-to-be-seen"));
    }

    #[test]
    fn unsupported_options_are_refused() {
        let refusal = |given: &[(&str, &str)]| of(given).unwrap_err().to_string();
        assert!(refusal(&[("time", "1.5")]).contains("--time=1.5: sysbench supports whole seconds only"));
        let real = SysbenchInstallation::detect(Path::new("sysbench"), "oltp_read_write").unwrap();
        let preferred = Tls {
            mode: SslMode::Preferred,
            ..Tls::default()
        };
        let refused = tls(&real, &preferred).unwrap_err().to_string();
        assert!(refused.contains("--mysql-ssl=preferred"), "{refused}");
        if real.warms_up {
            assert!(refusal(&[("rand-type", "special")]).contains("give one of uniform"));
        } else {
            assert!(refusal(&[("rand-type", "zipfian")]).contains("give one of uniform"));
            assert!(refusal(&[("events", "9"), ("warmup-time", "1")]).contains("--events"));
            assert!(
                of(&[("warmup-time", "5")])
                    .unwrap()
                    .contains(&"--report-checkpoints=5".to_owned())
            );
        }
    }

    #[test]
    fn passwords_are_quoted_for_the_option_file() {
        assert_eq!(password_line("a,b #c").unwrap(), "mysql-password=\"a,b #c\"\n");
        assert_eq!(password_line("a\"b").unwrap(), "mysql-password='a\"b'\n");
        assert!(password_line("a\"b'c").is_err());
    }
}
