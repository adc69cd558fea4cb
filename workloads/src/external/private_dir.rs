//! Keeps files with secrets for an external generator: mode 0600 in a directory of mode 0700,
//! removed after the run.

use std::env;
use std::fs;
use std::fs::DirBuilder;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

/// A private directory.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// Creates one under TMPDIR.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create() -> Result<Self> {
        let parent = env::temp_dir();
        for attempt in 0..1000 {
            let path = parent.join(format!("loadprint-external-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                // Left by a killed process with the same pid, or created by another user.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
            }
        }
        bail!(
            "{}: cannot create a private directory: all names are in use; remove loadprint-*",
            parent.display()
        )
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file of mode 0600.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600);
        let written = file
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("{}", path.display()))?;
        Ok(path)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!(
                "loadprint-load: {}: {error}: remove it, it may contain a password",
                self.path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn it_is_private_and_removed() {
        let dir = PrivateDir::create().unwrap();
        let file = dir.write("secret", "word").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(dir.path()), mode(&file)), (0o700, 0o600));
        assert!(dir.write("secret", "again").is_err());
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
    }
}
