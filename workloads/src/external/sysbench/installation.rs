//! Detects the version and the options of sysbench by running it, so that patches of distributions
//! are included.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::super::outcome::short;

/// An installation of sysbench.
#[derive(Debug)]
pub struct SysbenchInstallation {
    /// The program.
    pub program: PathBuf,
    /// Version, such as `1.0.20`.
    pub version: String,
    /// True if it has a warm-up that is not counted (1.1).
    pub warms_up: bool,
    /// Options of the program and of the script, with `-` in their names, and their help.
    options: BTreeMap<String, String>,
}

impl SysbenchInstallation {
    /// Runs the program to get its version and the options of `script`.
    ///
    /// # Errors
    /// If it does not exist or is not sysbench 1.
    pub fn detect(program: &Path, script: &str) -> Result<Self> {
        let version_line = output(program, &["--version"])?;
        let version = version_line
            .trim()
            .strip_prefix("sysbench ")
            .unwrap_or_default()
            .to_owned();
        if !version.starts_with("1.") {
            bail!(
                "{}: `{}` is not sysbench 1.0 or 1.1: give its path in --sysbench-path",
                program.display(),
                short(&version_line)
            );
        }
        let mut options = BTreeMap::new();
        // The help of a script without options (bulk_insert) is an error message.
        for text in [output(program, &["--help"])?, output(program, &[script, "help"])?] {
            for line in text.lines() {
                if let Some((name, help)) = option(line) {
                    options.insert(name, help);
                }
            }
        }
        if !options.contains_key("rand-type") {
            bail!(
                "{}: --help does not list --rand-type: give the path of sysbench in --sysbench-path",
                program.display()
            );
        }
        Ok(Self {
            program: program.to_owned(),
            version,
            warms_up: options.contains_key("warmup-time"),
            options,
        })
    }

    /// The refusal of an option or value.
    pub fn lacks(&self, option: &str) -> String {
        let version = &self.version;
        format!("sysbench {version} does not support {option}: omit it or use --generator=native")
    }

    /// True if it has this option.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// True if the option is a flag.
    pub fn is_switch(&self, name: &str) -> bool {
        self.options
            .get(name)
            .is_some_and(|help| help.starts_with("[=on|off]"))
    }

    /// The words in braces in the option's help.
    pub fn choices(&self, name: &str) -> Vec<&str> {
        let help = self.options.get(name).map_or("", String::as_str);
        let braces = help.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        braces.map_or_else(Vec::new, |(words, _)| words.split(',').map(str::trim).collect())
    }
}

/// Parses `  --name=N   words` into name and rest.
fn option(line: &str) -> Option<(String, String)> {
    let rest = line.trim_start().strip_prefix("--")?;
    let end = rest.find(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character))?;
    Some((rest[..end].replace('_', "-"), rest[end..].trim().to_owned()))
}

fn output(program: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| {
        format!(
            "{}: install sysbench (apt-get install sysbench) or give --sysbench-path",
            program.display()
        )
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_its_help() {
        let real = SysbenchInstallation::detect(Path::new("sysbench"), "oltp_read_write").unwrap();
        assert!(real.has("table-size") && real.has("mysql-ssl") && real.has("rand-type"));
        assert!(!real.has("scramble") && !real.has("no-such-option"));
        assert!(
            real.choices("rand-type").contains(&"uniform"),
            "{:?}",
            real.choices("rand-type")
        );
        assert!(real.is_switch("histogram") && !real.is_switch("tables"));
        let line = "  --rand-type=STRING   numbers distribution {uniform, gaussian} to use";
        assert_eq!(option(line).unwrap().0, "rand-type");
        assert_eq!(option("Compiled-in tests:"), None);
    }

    #[test]
    fn another_program_is_refused() {
        let refusal = SysbenchInstallation::detect(Path::new("/bin/echo"), "x")
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("--sysbench-path"), "{refusal}");
        let refusal = format!(
            "{:#}",
            SysbenchInstallation::detect(Path::new("/no/such"), "x").unwrap_err()
        );
        assert!(refusal.contains("apt-get install sysbench"), "{refusal}");
    }
}
