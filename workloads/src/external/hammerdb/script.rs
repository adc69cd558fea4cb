//! Builds the Tcl script for HammerDB's command line interface. It contains the password: the file
//! has mode 0600, and lines of HammerDB that repeat a setting are not printed.

use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;

use super::super::account;
use super::super::account::ResolvedAccount;
use crate::driver::connect::Account;
use crate::options::Values;
use crate::suite::tproc_c::Mode;
use crate::suite::tproc_c::Options;

/// The line before the JSON of the times per transaction type.
pub const TIMING: &str = "LOADPRINT TIMING";
/// The line after it.
pub const END: &str = "LOADPRINT END";

/// Options that HammerDB supports; other options must have their default.
const SUPPORTED: &[&str] = &[
    "all-warehouses",
    "check",
    "defaults-file",
    "format",
    "generator",
    "hammerdb-timeprofile",
    "history-pk",
    "keying-thinking",
    "mysql-db",
    "mysql-get-server-public-key",
    "mysql-host",
    "mysql-password-file",
    "mysql-port",
    "mysql-server-public-key-path",
    "mysql-socket",
    "mysql-storage-engine",
    "mysql-user",
    "out",
    "paused",
    "partition",
    "percentile",
    "rand-seed",
    "report-interval",
    "threads",
    "time",
    "tproc-mode",
    "warehouses",
    "warmup-time",
];

/// Refuses options that HammerDB does not support.
///
/// # Errors
/// The option.
pub fn refuse_unsupported(values: &Values) -> Result<()> {
    for name in values.to_json().keys() {
        if !SUPPORTED.contains(&name.as_str()) && values.changed(name) {
            bail!("HammerDB does not support --{name}: omit it or use --generator=native");
        }
    }
    if values.read::<Options>()?.check {
        bail!("HammerDB does not support --check=on: run the verb check afterwards");
    }
    Ok(())
}

/// The account, if HammerDB can use it without weakening it.
///
/// # Errors
/// If it requires TLS, or its password would leave this host under a key that the server sends.
pub fn account(account: &Account) -> Result<ResolvedAccount> {
    let account = account::resolve(account)?;
    if account.tls.mode > SslMode::Preferred {
        bail!("HammerDB does not support TLS, which the option file requires: use --generator=native");
    }
    account.require_trusted_network("HammerDB")?;
    Ok(account)
}

/// An option in minutes, HammerDB's unit.
///
/// # Errors
/// If it is not a whole number of minutes.
pub fn minutes(seconds: f64, name: &str) -> Result<u64> {
    if seconds % 60.0 != 0.0 || (name == "time" && seconds < 60.0) {
        let rounded_up = (seconds / 60.0).ceil().max(1.0) * 60.0;
        bail!("--{name}={seconds}: HammerDB supports whole minutes only: give --{name}={rounded_up}");
    }
    Ok((seconds / 60.0) as u64)
}

/// Quotes a text as one Tcl word (Tcl(n), rules 4 to 9).
fn word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if "\\\"$[]{};".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

fn settings(account: &ResolvedAccount, options: &Options) -> String {
    let endpoint = &account.endpoint;
    let (socket, host) = match &endpoint.socket {
        Some(socket) => (socket.as_str(), "localhost"),
        // With another value HammerDB uses the default socket of a local server.
        None => ("null", endpoint.host.as_str()),
    };
    let mut pairs = vec![
        ("connection mysql_host", word(host)),
        ("connection mysql_port", endpoint.port.to_string()),
        ("connection mysql_socket", word(socket)),
        ("tpcc mysql_user", word(&account.user)),
        ("tpcc mysql_pass", word(&account.password)),
        ("tpcc mysql_dbase", word(&account.database)),
        ("tpcc mysql_storage_engine", word(&options.mysql_storage_engine)),
        ("tpcc mysql_partition", options.partition.to_string()),
        (
            "tpcc mysql_prepared",
            (options.tproc_mode == Mode::Prepared).to_string(),
        ),
        ("tpcc mysql_allwarehouse", options.all_warehouses.to_string()),
        ("tpcc mysql_keyandthink", options.keying_thinking.to_string()),
    ];
    // Not all versions have this setting: written only if it is on.
    if options.history_pk {
        pairs.push(("tpcc mysql_history_pk", "true".to_owned()));
    }
    let mut script = "fconfigure stdout -buffering line\ndbset db mysql\ndbset bm TPC-C\n".to_owned();
    for (name, value) in pairs {
        script += &format!("diset {name} {value}\n");
    }
    script
}

/// Builds the schema with at most one virtual user per warehouse.
pub fn prepare(account: &ResolvedAccount, values: &Values, threads: usize) -> Result<String> {
    let options: Options = values.read()?;
    let warehouses = options.warehouses;
    let users = i64::try_from(threads)?.min(warehouses);
    Ok(settings(account, &options)
        + &format!(
            "diset tpcc mysql_count_ware {warehouses}\ndiset tpcc mysql_num_vu {users}\nbuildschema\n"
        ))
}

/// Drops the schema.
pub fn cleanup(account: &ResolvedAccount, values: &Values) -> Result<String> {
    Ok(settings(account, &values.read()?) + "deleteschema\n")
}

/// A timed run with this number of virtual users; ramp-up and duration in minutes.
pub fn run(
    account: &ResolvedAccount,
    values: &Values,
    threads: usize,
    rampup: u64,
    duration: u64,
) -> Result<String> {
    let profile = values.read::<super::Options>()?.hammerdb_timeprofile;
    Ok(settings(account, &values.read()?)
        + &format!(
            "diset tpcc mysql_driver timed
diset tpcc mysql_rampup {rampup}
diset tpcc mysql_duration {duration}
diset tpcc mysql_timeprofile {profile}
loadscript
vuset vu {threads}
vuset logtotemp 0
vucreate
tcset refreshrate 10
tcstart
set loadprint_job [ vurun ]
vudestroy
tcstop
puts \"LOADPRINT JOB $loadprint_job\"
if {{ [ regexp {{jobid=([0-9A-Fa-f]+)}} $loadprint_job all loadprint_id ] }} {{
    puts \"{TIMING}\"
    puts [ jobs $loadprint_id timing ]
    puts \"{END}\"
}}
"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_word_of_tcl() {
        assert_eq!(word("a b"), "\"a b\"");
        assert_eq!(word("$x[y]{z}\"\\;"), "\"\\$x\\[y\\]\\{z\\}\\\"\\\\\\;\"");
    }
}
