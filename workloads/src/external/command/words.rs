//! Builds the process of a command: its words, its environment, and the option file with the
//! account.

use std::process::Command;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;

use super::super::Job;
use super::super::account;
use super::super::account::PrivateDir;
use super::super::account::ResolvedAccount;
use crate::options::Common;

/// The process of an option with this text, ready to start; of /bin/sh with `shell`.
///
/// # Errors
/// If the words cannot be split.
pub fn command(
    job: &Job<'_>,
    (option, text): (&str, &str),
    shell: bool,
    private: &PrivateDir,
) -> Result<Command> {
    let common: Common = job.values.read()?;
    let account = account::resolve(job.account)?;
    let file = private.write("client.cnf", &option_file(&account)?)?;
    let settings = [
        ("threads", job.threads.to_string()),
        ("seconds", common.time.to_string()),
        ("warmup", common.warmup_time.to_string()),
        ("rate", common.rate.to_string()),
        ("defaults_file", file.display().to_string()),
        ("host", account.endpoint.host),
        ("port", account.endpoint.port.to_string()),
        ("socket", account.endpoint.socket.unwrap_or_default()),
        ("database", account.database),
        ("user", account.user),
    ];
    let filled = |word: &str| {
        settings.iter().fold(word.to_owned(), |word, (name, value)| {
            word.replace(&format!("{{{name}}}"), value)
        })
    };
    let mut command = if shell {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &filled(text)]);
        shell
    } else {
        let words =
            shlex::split(text).with_context(|| format!("--{option}={text}: missing closing quote"))?;
        let Some((first, rest)) = words.split_first() else {
            bail!("--{option} is empty: give a program and its arguments");
        };
        let mut plain = Command::new(filled(first));
        plain.args(rest.iter().map(|word| filled(word)));
        plain
    };
    for (name, value) in &settings {
        let name = if *name == "warmup" { "warmup_seconds" } else { name };
        command.env(format!("LOADPRINT_{}", name.to_uppercase()), value);
    }
    Ok(command)
}

fn option_file(account: &ResolvedAccount) -> Result<String> {
    let quoted = |text: &str| -> Result<String> {
        if text.contains('\n') {
            bail!(
                "the account contains a newline, which an option file cannot represent: use another account"
            );
        }
        Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
    };
    let mut text = format!(
        "[client]\nuser={}\npassword={}\n",
        quoted(&account.user)?,
        quoted(&account.password)?
    );
    let endpoint = &account.endpoint;
    text += &match &endpoint.socket {
        Some(socket) => format!("socket={}\n", quoted(socket)?),
        // A client with a default socket uses it; the others need the port.
        None if endpoint.is_local() => format!("port={}\n", endpoint.port),
        None => {
            let host = quoted(&endpoint.host)?;
            format!("host={host}\nport={}\nprotocol=tcp\n", endpoint.port)
        }
    };
    Ok(text + &tls_lines(&account.tls, quoted)?)
}

/// Only settings that are given: other clients have other defaults and names. A program that does
/// not know `ssl-mode` must not run without TLS where it is required; the other lines are `loose`.
fn tls_lines(tls: &Tls, quoted: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut text = String::new();
    if tls.is_given {
        let loose = if tls.mode < SslMode::Required {
            "loose-"
        } else {
            ""
        };
        text += &format!("{loose}ssl-mode={}\n", tls.mode.word().to_uppercase());
    }
    for (name, value) in [
        ("ssl-ca", &tls.ca),
        ("ssl-cert", &tls.cert),
        ("ssl-key", &tls.key),
        ("loose-server-public-key-path", &tls.public_key),
    ] {
        if let Some(value) = value {
            text += &format!("{name}={}\n", quoted(value)?);
        }
    }
    if tls.get_public_key {
        text += "loose-get-server-public-key=1\n";
    }
    Ok(text)
}
