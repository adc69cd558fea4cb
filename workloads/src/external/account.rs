//! Resolves the account from `--defaults-file` and MYSQL_PWD, for generators that do not read MySQL
//! option files.

use std::env;
use std::fs;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::driver::connect::Account;

/// Address and account.
#[derive(Clone)]
pub struct ResolvedAccount {
    /// Host name; `localhost` means the socket.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of the unix socket, if one is used.
    pub socket: Option<String>,
    /// User name.
    pub user: String,
    /// The password.
    pub password: String,
    /// Database.
    pub database: String,
}

/// Adds the values of the option file, group `client`, and of MYSQL_PWD to those of the command
/// line.
///
/// # Errors
/// If the option file cannot be read or contains `!include`.
pub fn resolve(account: &Account) -> Result<ResolvedAccount> {
    let mut file = Vec::new();
    if let Some(path) = &account.option_file {
        let text = fs::read_to_string(path).with_context(|| format!("--defaults-file {}", path.display()))?;
        file = client_group(&text).with_context(|| format!("--defaults-file {}", path.display()))?;
    }
    let from_file = |name: &str| {
        file.iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let [endpoint] = account.endpoints.as_slice() else {
        bail!(
            "{}: an external generator supports one server address only",
            account.describe()
        );
    };
    let socket = endpoint.socket.clone().or_else(|| from_file("socket"));
    let host = endpoint.host.clone().or_else(|| from_file("host"));
    let port = match (endpoint.port, from_file("port")) {
        (Some(port), _) => port,
        (None, Some(text)) => text
            .parse()
            .with_context(|| format!("--defaults-file: port={text}"))?,
        (None, None) => 3306,
    };
    let password = account.password.clone().or_else(|| from_file("password"));
    Ok(ResolvedAccount {
        // The socket is used unless another host is given, as in libmysqlclient.
        socket: socket.filter(|_| host.as_deref().is_none_or(|host| host == "localhost")),
        host: host.unwrap_or_else(|| "localhost".to_owned()),
        port,
        user: account
            .user
            .clone()
            .or_else(|| from_file("user"))
            .unwrap_or_else(|| "sbtest".to_owned()),
        password: password
            .or_else(|| env::var("MYSQL_PWD").ok())
            .unwrap_or_default(),
        database: account.database.clone().unwrap_or_default(),
    })
}

/// Reads the settings of group `[client]` of an option file (MySQL manual, "Using Option Files").
fn client_group(text: &str) -> Result<Vec<(String, String)>> {
    let (mut inside, mut settings) = (false, Vec::new());
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with("!include") {
            bail!(
                "`{line}` is not supported with an external generator: copy the settings of [client] into this file"
            );
        }
        if let Some(group) = line.strip_prefix('[') {
            inside = group.trim_end_matches(']').trim() == "client";
        } else if inside {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            settings.push((key.trim().replace('_', "-"), unquoted(value.trim())));
        }
    }
    Ok(settings)
}

/// Removes quotes and resolves escapes of option files.
fn unquoted(value: &str) -> String {
    let quoted = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
    let inner = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    let mut out = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(escaped @ ('\\' | '"' | '\'')) => out.push(escaped),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_group_is_parsed_as_by_the_library() {
        let text = "[mysqld]\nport=1\n[client]\nuser = someone\npassword='a\\\\b c'\n# port=2\nport=3307\n[mysql]\nuser=x\n";
        let settings = client_group(text).unwrap();
        let setting = |name: &str| {
            settings
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(
            (setting("user"), setting("password"), setting("port")),
            (Some("someone"), Some("a\\b c"), Some("3307"))
        );
        assert!(client_group("!includedir /etc/mysql\n").is_err());
    }
}
