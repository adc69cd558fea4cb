//! Passwords (RFC 7617), checked by bcrypt as Prometheus's exporters do. What was right once is remembered by its digest, because
//! bcrypt is slow on purpose.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::Mutex as SyncMutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use ring::digest::Context;
use ring::digest::SHA256;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::web_config::Settings;

/// A hash that nothing has: an unknown user costs the time of a known one.
const NOBODY: &str = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG";
/// Longer passwords are cut by bcrypt itself at 72 bytes; anything beyond this is no password.
const LONGEST: usize = 1024;
const REMEMBERED: usize = 64;

/// Who got in before.
#[derive(Debug, Default)]
pub struct Guard {
    known: SyncMutex<HashSet<Vec<u8>>>,
    /// One password is checked at a time: somebody who tries many keeps one core busy at most, and keeps nobody waiting who is known.
    check: Mutex<()>,
}

impl Guard {
    /// True if a header `Authorization` has a user of `settings` with the right password.
    pub async fn admits(&self, settings: &Arc<Settings>, header: Option<&HeaderValue>) -> bool {
        if settings.users.is_empty() {
            return true;
        }
        let Some((user, password)) = header.and_then(credentials) else {
            return false;
        };
        let hash = settings.users.get(&user).map(|hash| hash.0.clone());
        let digest = digest(&[&user, &password, hash.as_deref().unwrap_or(NOBODY)]);
        if self.known().contains(&digest) {
            return true;
        }
        let turn = self.check.lock().await;
        if self.known().contains(&digest) {
            return true;
        }
        let is_known = hash.is_some();
        let check = move || bcrypt::verify(password, hash.as_deref().unwrap_or(NOBODY)).unwrap_or(false);
        let is_right = spawn_blocking(check).await.unwrap_or(false) && is_known;
        drop(turn);
        if is_right {
            let mut known = self.known();
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(digest);
        }
        is_right
    }

    fn known(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn credentials(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") || encoded.len() > LONGEST {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn digest(parts: &[&str]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().to_vec()
}
