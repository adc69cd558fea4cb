//! Reads the `--mysql-ssl*` options.

use std::path::Path;

use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;

use crate::options::Values;

/// Reads the `--mysql-ssl*` options.
pub fn from_options(values: &Values) -> Result<Tls> {
    let text = |name| Ok::<_, anyhow::Error>(values.text(name)?.map(str::to_owned));
    let tls = Tls {
        mode: match values.text("mysql-ssl")? {
            Some("required" | "on") => SslMode::Required,
            Some("preferred") => SslMode::Preferred,
            Some("verify_ca") => SslMode::VerifyCa,
            Some("verify_identity") => SslMode::VerifyIdentity,
            _ => SslMode::Disabled,
        },
        ca: text("mysql-ssl-ca")?,
        cert: text("mysql-ssl-cert")?,
        key: text("mysql-ssl-key")?,
        cipher: text("mysql-ssl-cipher")?,
    };
    let verifies = matches!(tls.mode, SslMode::VerifyCa | SslMode::VerifyIdentity);
    // The option file, which only the library reads, may set it.
    if verifies && tls.ca.is_none() && values.text("defaults-file")?.is_none() {
        bail!("--mysql-ssl=verify_ca and verify_identity need --mysql-ssl-ca, the CA certificate");
    }
    let files = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
    for (name, file) in files {
        if let Some(file) = file {
            if tls.mode == SslMode::Disabled {
                bail!(
                    "--mysql-ssl-{name} has no effect with --mysql-ssl=disabled: give --mysql-ssl=required, verify_ca or verify_identity"
                );
            }
            if !Path::new(file).is_file() {
                bail!("--mysql-ssl-{name}={file}: the file does not exist");
            }
        }
    }
    Ok(tls)
}
