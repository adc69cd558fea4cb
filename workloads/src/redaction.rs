//! Removes secrets from the server's variables before they are recorded, by their names and inside
//! their values. An unknown name that sounds like a secret is one.

use std::sync::LazyLock;

use regex::Captures;
use regex::Regex;

/// In place of a secret.
const REDACTED: &str = "<redacted>";

type Pattern = LazyLock<Result<Regex, regex::Error>>;

/// Words of names. Those of MySQL 5.7 to 9, MariaDB 10 to 12 and Percona Server: `report_password`,
/// `authentication_ldap_simple_bind_root_pwd`, `keyring_encrypted_file_password`,
/// `keyring_hashicorp_secret_id`, `hashicorp_key_management_token`, `ssl_passphrase`,
/// `file_key_management_filekey`, `telemetry.otel_exporter_otlp_traces_headers`, …
const WORDS: [&str; 11] = [
    "credential",
    "credentials",
    "filekey",
    "headers",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "pwd",
    "secret",
    "token",
];
/// Ends of names, whole words: `wsrep_sst_auth`, `s3_access_key`, `keyring_hashicorp_role_id`. Other
/// keys are paths (`ssl_key`), sizes or names of keys.
const ENDS: [&str; 9] = [
    "access_key",
    "api_key",
    "account_key",
    "auth",
    "encryption_key",
    "master_key",
    "private_key",
    "role_id",
    "secret_key",
];
/// Ends of names that are not a secret: files, plugins and rules for passwords.
const HARMLESS_ENDS: [&str; 8] = [
    "dictionary",
    "dir",
    "file",
    "path",
    "plugin",
    "plugins",
    "policy",
    "users",
];

/// Credentials in an address.
static ADDRESS: Pattern = LazyLock::new(|| Regex::new(r"(://)[^\s/?#]*@"));
/// A setting in a list, a connection string or a statement.
static SETTING: Pattern =
    LazyLock::new(|| Regex::new(r#"([\w.-]+)(\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s;,&'"]+)"#));
/// An option and its value in a command line.
static OPTION: Pattern = LazyLock::new(|| Regex::new(r#"(--?[\w-]+)(\s+)("[^"]*"|'[^']*'|[^\s'"-]\S*)"#));
/// The password of an account in a statement.
static ACCOUNT: Pattern =
    LazyLock::new(|| Regex::new(r#"(?i)(\b(?:identified|password)\b[^'";]*)('[^']*'|"[^"]*")"#));
/// The password of a client in a command line.
static SHORT_OPTION: Pattern = LazyLock::new(|| Regex::new(r"(^|\s)-p\S+"));

/// The value to record: without the secrets that it contains.
pub fn redacted(name: &str, value: &str) -> String {
    if is_secret(name, value) {
        return REDACTED.to_owned();
    }
    let value = replaced(&ADDRESS, value, |found| format!("{}{REDACTED}@", &found[1]));
    let value = replaced(&ACCOUNT, &value, |found| format!("{}'{REDACTED}'", &found[1]));
    let pair = |found: &Captures<'_>| {
        let (key, separator, word) = (&found[1], &found[2], &found[3]);
        if is_secret(&key.replace('-', "_"), word.trim_matches(['"', '\''])) {
            format!("{key}{separator}{REDACTED}")
        } else {
            found[0].to_owned()
        }
    };
    let value = replaced(&SETTING, &value, pair);
    let value = replaced(&OPTION, &value, pair);
    if name.ends_with("cmd") {
        return replaced(&SHORT_OPTION, &value, |found| {
            format!("{}-p{REDACTED}", &found[1])
        });
    }
    value
}

/// Replaces all matches. A pattern that does not compile fails the tests; a value is then not
/// recorded at all.
fn replaced(pattern: &Pattern, value: &str, by: impl Fn(&Captures<'_>) -> String) -> String {
    match &**pattern {
        Ok(regex) => regex.replace_all(value, by).into_owned(),
        Err(_) => REDACTED.to_owned(),
    }
}

/// Decides by the name. Switches and numbers, as of `disconnect_on_expired_password`, are not
/// secrets.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(['_', '.']).filter(|word| !word.is_empty()).collect();
    let ends_with = |end: &&str| words.ends_with(&end.split('_').collect::<Vec<_>>());
    let is_named = words.iter().any(|word| WORDS.contains(word)) || ENDS.iter().any(ends_with);
    let is_rule = HARMLESS_ENDS.iter().any(ends_with);
    let is_switch = matches!(
        value.to_ascii_uppercase().as_str(),
        "" | "ON" | "OFF" | "YES" | "NO"
    );
    is_named && !is_rule && !is_switch && value.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "quite-secret";

    #[test]
    fn secrets_are_found_by_name() {
        for name in [
            "report_password",
            "wsrep_sst_auth",
            "authentication_ldap_simple_bind_root_pwd",
            "authentication_ldap_sasl_bind_root_pwd",
            "keyring_hashicorp_secret_id",
            "keyring_hashicorp_role_id",
            "keyring_encrypted_file_password",
            "hashicorp_key_management_token",
            "file_key_management_filekey",
            "s3_access_key",
            "s3_secret_key",
            "ssl_passphrase",
            "telemetry.otel_exporter_otlp_traces_headers",
            "some_plugin.api_key",
        ] {
            assert_eq!(redacted(name, SECRET), REDACTED, "{name}");
        }
    }

    #[test]
    fn secrets_are_found_in_values() {
        for (name, value, kept) in [
            (
                "feedback_http_proxy",
                "http://user:quite-secret@proxy:3128/",
                "@proxy:3128/",
            ),
            (
                "wsrep_cluster_address",
                "gcomm://u:quite-secret@a,b?pc.wait_prim=no",
                "a,b?pc.wait_prim=no",
            ),
            (
                "wsrep_provider_options",
                "gcs.fc_limit = 16; socket.password = quite-secret; socket.ssl_key = /k.pem",
                "gcs.fc_limit = 16; socket.password = <redacted>; socket.ssl_key = /k.pem",
            ),
            (
                "wsrep_notify_cmd",
                "/n.sh -pquite-secret --token quite-secret --x --password=quite-secret --pwd 'quite-secret' --x=1",
                "--x=1",
            ),
            (
                "init_connect",
                "SET PASSWORD = 'quite-secret'; SET @a = 'b'",
                "SET @a = 'b'",
            ),
            (
                "init_connect",
                "ALTER USER u IDENTIFIED WITH p BY 'quite-secret'",
                "ALTER USER u",
            ),
            (
                "connection_string",
                "Server=x;Pwd=quite-secret;User=y",
                "Server=x",
            ),
        ] {
            let text = redacted(name, value);
            assert!(!text.contains(SECRET) && text.contains(kept), "{name}: {text}");
        }
    }

    #[test]
    fn other_variables_are_kept() {
        for (name, value) in [
            ("disconnect_on_expired_password", "ON"),
            ("report_password", ""),
            ("datadir", "/srv/data"),
            ("key_buffer_size", "8388608"),
            ("ssl_key", "server-key.pem"),
            ("caching_sha2_password_private_key_path", "private_key.pem"),
            ("validate_password.policy", "MEDIUM"),
            ("validate_password.dictionary_file", "/d"),
            ("default_authentication_plugin", "caching_sha2_password"),
            ("authentication_policy", "*,,"),
            ("mysql_native_password_proxy_users", "OFF"),
            ("password_history", "0"),
            (
                "optimizer_switch",
                "index_merge=on,index_merge_union=on,hash_join=on",
            ),
            ("sql_mode", "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES"),
            ("init_connect", "SET NAMES utf8mb4"),
            (
                "version_comment",
                "MySQL Community Server - GPL; no password needed",
            ),
            (
                "tls_ciphersuites",
                "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384",
            ),
        ] {
            assert_eq!(redacted(name, value), value, "{name}");
        }
    }
}
