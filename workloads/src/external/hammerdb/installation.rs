//! Finds HammerDB and starts it: a bundle contains its own Tcl, a source checkout runs under the
//! system's tclsh8.6.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::super::account::PrivateDir;

/// For a checkout: HammerDB draws HTML charts with ticklecharts, which a benchmark does not need.
const PACKAGES: &str = "package ifneeded ticklecharts 3.1.4 {package provide ticklecharts 3.1.4}\n";
/// For a checkout of 5.0 and later under Tcl 8.6: auto-loading makes it available in the threads of
/// virtual users too.
const INDEX: &str = "# Tcl autoload index file, version 2.0\nset auto_index(zipfs) [list source [file join $dir zipfs.tcl]]\n";
/// A checkout has no archive to mount.
const ZIPFS: &str = "proc zipfs {subcommand args} {\n    if {$subcommand eq \"root\"} { return \"\" }\n    return [list]\n}\n";

/// An installation of HammerDB.
#[derive(Debug)]
pub struct HammerDbInstallation {
    directory: PathBuf,
    /// True if it contains a tclsh.
    bundle: bool,
}

impl HammerDbInstallation {
    /// The installation in the value of HAMMERDB_HOME.
    ///
    /// # Errors
    /// If HAMMERDB_HOME is not set or has no hammerdbcli.
    pub fn at(variable: Option<OsString>) -> Result<Self> {
        let Some(directory) = variable.filter(|value| !value.is_empty()).map(PathBuf::from) else {
            bail!(
                "HAMMERDB_HOME is not set: set it to the directory of HammerDB 4.9 or later that contains hammerdbcli"
            );
        };
        if !directory.join("hammerdbcli").is_file() {
            bail!(
                "HAMMERDB_HOME={}: hammerdbcli does not exist there: set it to the directory that contains hammerdbcli",
                directory.display()
            );
        }
        let directory = fs::canonicalize(&directory).with_context(|| format!("{}", directory.display()))?;
        let programs = fs::read_dir(directory.join("bin"))
            .into_iter()
            .flatten()
            .flatten();
        let mut names = programs.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let bundle = names.any(|name| name.starts_with("tclsh"));
        Ok(Self { directory, bundle })
    }

    /// Its command line interface with a script. Settings and logs are in `private`: HammerDB
    /// writes settings, with the password, to files under TMP.
    ///
    /// # Errors
    /// If the private files cannot be written.
    pub fn command(&self, private: &PrivateDir, script: &str) -> Result<Command> {
        let script = private.write("run.tcl", script)?;
        let mut command = if self.bundle {
            Command::new(self.directory.join("hammerdbcli"))
        } else {
            private.write("pkgIndex.tcl", PACKAGES)?;
            private.write("tclIndex", INDEX)?;
            private.write("zipfs.tcl", ZIPFS)?;
            let mut command = Command::new("tclsh8.6");
            command.arg("hammerdbcli").env("TCLLIBPATH", private.path());
            command
        };
        command
            .args(["tcl", "auto"])
            .arg(script)
            .current_dir(&self.directory);
        command
            .env("TMP", private.path())
            .env("TMPDIR", private.path())
            .env("TEMP", private.path());
        Ok(command)
    }

    /// How to fix a failed start.
    pub fn hint(&self) -> &'static str {
        if self.bundle {
            "check that hammerdbcli runs"
        } else {
            "for a source checkout, apt-get install tcl8.6 tcl-thread mysqltcl libsqlite3-tcl tcllib"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_wrong_home_is_refused_with_the_fix() {
        let refusal = |home: Option<&str>| {
            HammerDbInstallation::at(home.map(OsString::from))
                .unwrap_err()
                .to_string()
        };
        assert!(refusal(None).contains("HAMMERDB_HOME is not set: set it"));
        assert!(refusal(Some("")).contains("HAMMERDB_HOME is not set"));
        assert!(refusal(Some("/usr")).contains("hammerdbcli does not exist"));
    }

    #[test]
    fn a_bundle_and_a_checkout_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("hammerdbcli"), "").unwrap();
        let home = || HammerDbInstallation::at(Some(dir.path().into())).unwrap();
        let private = PrivateDir::create().unwrap();
        let checkout = home().command(&private, "").unwrap();
        assert_eq!(checkout.get_program(), "tclsh8.6");
        assert!(private.path().join("tclIndex").exists());
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join("bin/tclsh9.0"), "").unwrap();
        let private = PrivateDir::create().unwrap();
        assert!(
            home()
                .command(&private, "")
                .unwrap()
                .get_program()
                .to_string_lossy()
                .ends_with("/hammerdbcli")
        );
        assert!(!private.path().join("tclIndex").exists());
    }
}
