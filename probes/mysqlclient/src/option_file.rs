//! Reads MySQL option files, which the client library would read again, by path, and without the
//! options of TLS modes and keys (`mysql_read_default_options` of sql-common/client.cc).

use std::path::Path;
use std::path::PathBuf;
use std::ptr;

use mysqlclient_sys as sys;

use crate::library::set_text;
use crate::library::set_value;
use crate::private_file::Refusal;
use crate::private_file::read_private;

/// Options about TLS and keys that are read, or that change nothing for a client of one connection.
/// Any other such option is refused: ignoring it could expose a password.
const SECURITY: [&str; 17] = [
    "get-server-public-key",
    "server-public-key-path",
    "ssl",
    "ssl-ca",
    "ssl-capath",
    "ssl-cert",
    "ssl-cipher",
    "ssl-crl",
    "ssl-crlpath",
    "ssl-fips-mode",
    "ssl-key",
    "ssl-mode",
    "ssl-session-data",
    "ssl-session-data-continue-on-failed-reuse",
    "ssl-verify-server-cert",
    "tls-ciphersuites",
    "tls-version",
];

/// The settings of some groups of an option file, read once.
#[derive(Clone, Default)]
pub struct OptionFile {
    path: PathBuf,
    /// Names with `-`, without the prefixes loose, skip and disable.
    settings: Vec<(String, String)>,
}

impl std::fmt::Debug for OptionFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("OptionFile").field(&self.path).finish()
    }
}

impl OptionFile {
    /// Reads the file; `option` names it in messages.
    ///
    /// # Errors
    /// Those of [`read_private`]; a line that is not an option, `!include`, and an option about TLS
    /// or keys that is not supported.
    pub fn read(path: &Path, option: &str, groups: &[&str]) -> Result<Self, Refusal> {
        let place = |reason: String| Refusal(format!("{option} {}: {reason}", path.display()));
        let settings = parse(&read_private(path, option)?, groups).map_err(place)?;
        let file = Self {
            path: path.to_owned(),
            settings,
        };
        for (name, _) in &file.settings {
            let is_security =
                name.starts_with("ssl") || name.starts_with("tls") || name.contains("public-key");
            if is_security && !SECURITY.contains(&name.as_str()) {
                return Err(place(format!(
                    "`{name}` is not supported; remove it, or use ssl-mode, ssl-ca and server-public-key-path"
                )));
            }
        }
        Ok(file)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A value; the last one of several.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter().rev();
        let (_, value) = settings.find(|(key, _)| key == name)?;
        Some(value)
    }

    /// A switch.
    ///
    /// # Errors
    /// If the value is neither on nor off.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "" | "1" | "on" | "true" | "yes" => Ok(Some(true)),
            "0" | "off" | "false" | "no" => Ok(Some(false)),
            _ => Err(Refusal(format!(
                "{}: {name}={value}: not a switch; use 1 or 0",
                self.path.display()
            ))),
        }
    }

    /// Host and socket, in that order, after those of the command line. As in the library, the
    /// socket is used unless another host than localhost or the protocol TCP is selected.
    pub fn address(&self, host: Option<&str>, socket: Option<&str>) -> (Option<String>, Option<String>) {
        if let Some(socket) = socket {
            return (Some("localhost".to_owned()), Some(socket.to_owned()));
        }
        let host = host.or_else(|| self.get("host"));
        let is_local = host.is_none_or(|host| host == "localhost");
        if is_local
            && self
                .get("protocol")
                .is_some_and(|name| name.eq_ignore_ascii_case("tcp"))
        {
            return (Some("127.0.0.1".to_owned()), None);
        }
        let socket = self.get("socket").filter(|_| is_local);
        (host.map(str::to_owned), socket.map(str::to_owned))
    }

    /// The port.
    ///
    /// # Errors
    /// If it is not a port.
    pub fn port(&self) -> Result<Option<u16>, Refusal> {
        let Some(text) = self.get("port") else {
            return Ok(None);
        };
        match text.parse() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(Refusal(format!(
                "{}: port={text}: not a port from 1 to 65535",
                self.path.display()
            ))),
        }
    }

    /// Sets the options of a handle that are neither address, account nor TLS.
    ///
    /// # Errors
    /// If a switch is neither on nor off, or a text contains a zero byte.
    ///
    /// # Safety
    /// `mysql` must come from mysql_init and must not be connected yet.
    pub unsafe fn set(&self, mysql: *mut sys::MYSQL) -> Result<(), Refusal> {
        use sys::mysql_option as option;
        let texts = [
            ("bind-address", option::MYSQL_OPT_BIND),
            ("default-auth", option::MYSQL_DEFAULT_AUTH),
            ("init-command", option::MYSQL_INIT_COMMAND),
            ("plugin-dir", option::MYSQL_PLUGIN_DIR),
        ];
        for (name, option) in texts {
            if let Some(text) = self.get(name) {
                // SAFETY: these options take a string.
                unsafe { set_text(mysql, option, text) }?;
            }
        }
        if self.flag("compress")? == Some(true) {
            // SAFETY: this option takes no value.
            unsafe { sys::mysql_options(mysql, option::MYSQL_OPT_COMPRESS, ptr::null()) };
        }
        if let Some(enabled) = self.flag("enable-cleartext-plugin")? {
            // SAFETY: this option takes a bool.
            unsafe { set_value(mysql, option::MYSQL_ENABLE_CLEARTEXT_PLUGIN, enabled) };
        }
        Ok(())
    }
}

/// The settings of some groups (MySQL manual, "Using Option Files", and mysys/my_default.cc).
fn parse(text: &str, groups: &[&str]) -> Result<Vec<(String, String)>, String> {
    let (mut group, mut settings) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let refused = |reason: &str| format!("line {}: {reason}", number + 1);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('!') {
            return Err(refused(
                "!include and !includedir are not supported; copy the settings of [client] into this file",
            ));
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, _)) = rest.split_once(']') else {
                return Err(refused("a group without `]`"));
            };
            group = Some(name.trim_end());
            continue;
        }
        let Some(group) = group else {
            return Err(refused("an option before the first group; add [client]"));
        };
        if groups.contains(&group) {
            let (name, value) = without_comment(line)
                .split_once('=')
                .unwrap_or((without_comment(line), ""));
            settings.push(setting(name.trim_end(), value.trim()));
        }
    }
    Ok(settings)
}

fn setting(name: &str, value: &str) -> (String, String) {
    let name = name.replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let switch = name.strip_prefix("skip-");
    match switch.or_else(|| name.strip_prefix("disable-")) {
        Some(switch) => (switch.to_owned(), "0".to_owned()),
        None => (name.to_owned(), unquoted(value)),
    }
}

/// Removes a comment that starts at a `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (place, character) in line.char_indices() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            ('\'' | '"', Some(mark)) if mark == character && !escaped => quote = None,
            ('#', None) => return line[..place].trim_end(),
            _ => {}
        }
        escaped = quote.is_some() && character == '\\' && !escaped;
    }
    line
}

/// Removes quotes and resolves escapes.
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
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> OptionFile {
        OptionFile {
            path: PathBuf::new(),
            settings: parse(text, &["client", "loadprint-collect"]).unwrap(),
        }
    }

    #[test]
    fn groups_quotes_and_comments_are_those_of_the_library() {
        let file = file(
            "[mysqld]\nport=1\n[client]\nuser = someone # a comment\npassword='a\\\\b #c'\n# port=2\nport=3307\n\
             [mysql]\nuser=x\n[loadprint-collect]\nloose-ssl_mode = REQUIRED\nskip-ssl\ncompress\n",
        );
        let values = ["user", "password", "ssl-mode"].map(|name| file.get(name));
        assert_eq!(values, [Some("someone"), Some("a\\b #c"), Some("REQUIRED")]);
        assert_eq!(file.port(), Ok(Some(3307)));
        assert_eq!(
            (file.flag("ssl"), file.flag("compress")),
            (Ok(Some(false)), Ok(Some(true)))
        );
    }

    proptest! {
        /// Any text is parsed or refused, and a value in quotes is read as it was written.
        #[test]
        fn any_text_is_parsed_or_refused(text in "(\\[client\\]\n)?([a-z!#;_'\"=\\\\\\[\\] -]|\\PC|\n){0,200}", value in "[^\r\n]{0,50}") {
            drop(parse(&text, &["client"]));
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let settings = parse(&format!("[client]\npassword = \"{quoted}\" # a comment\n"), &["client"]);
            prop_assert_eq!(settings, Ok(vec![("password".to_owned(), value)]));
        }
    }

    #[test]
    fn includes_and_lines_outside_groups_are_refused() {
        for (text, part) in [
            ("[client]\n!includedir /etc/mysql\n", "line 2: !include"),
            ("user=x\n", "line 1: an option before"),
            ("[client\n", "line 1: a group without"),
        ] {
            assert!(parse(text, &["client"]).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn the_socket_is_used_for_localhost_only() {
        let file = file("[client]\nhost=localhost\nsocket=/run/sock\n");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(file.address(None, None), (text("localhost"), text("/run/sock")));
        assert_eq!(file.address(Some("db"), None), (text("db"), None));
        assert_eq!(
            file.address(Some("db"), Some("/x")),
            (text("localhost"), text("/x"))
        );
        let tcp = OptionFile {
            settings: vec![("protocol".to_owned(), "TCP".to_owned())],
            ..file
        };
        assert_eq!(tcp.address(None, None), (text("127.0.0.1"), None));
    }
}
