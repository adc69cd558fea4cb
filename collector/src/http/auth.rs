//! Checks passwords (basic authentication, RFC 7617) against bcrypt hashes, as the Prometheus
//! exporters do. Caches the digests of correct ones, because bcrypt is slow by design.

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

/// A hash without a known password, checked for unknown users: they take the same time as known
/// ones.
const DUMMY_HASH: &str = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG";
/// Longest encoded credentials that are checked; bcrypt itself only uses the first 72 bytes of a
/// password.
const MAX_CREDENTIALS: usize = 1024;
const MAX_CACHED: usize = 64;

/// Checks credentials and caches those that were correct.
#[derive(Debug, Default)]
pub struct Authenticator {
    cache: SyncMutex<HashSet<Vec<u8>>>,
    /// Held for one check at a time, until it ends: guessing keeps one core busy at most, and cached
    /// clients do not wait for it. The clients that wait are limited by `MAX_CONNECTIONS`.
    checking: Arc<Mutex<()>>,
}

impl Authenticator {
    /// True if a header `Authorization` has a user of `settings` with the correct password.
    pub async fn accepts(&self, settings: &Arc<Settings>, header: Option<&HeaderValue>) -> bool {
        if settings.users.is_empty() {
            return true;
        }
        let Some((user, password)) = header.and_then(credentials) else {
            return false;
        };
        let hash = settings.users.get(&user).map(|hash| hash.0.clone());
        let digest = digest(&[&user, &password, hash.as_deref().unwrap_or(DUMMY_HASH)]);
        if self.cache().contains(&digest) {
            return true;
        }
        let checking = Arc::clone(&self.checking).lock_owned().await;
        if self.cache().contains(&digest) {
            return true;
        }
        let is_user = hash.is_some();
        let check = move || {
            let is_correct = bcrypt::verify(password, hash.as_deref().unwrap_or(DUMMY_HASH));
            // Not held by this future: it is dropped when the client disconnects, the check is not.
            drop(checking);
            is_correct.unwrap_or(false)
        };
        let is_correct = spawn_blocking(check).await.unwrap_or(false) && is_user;
        if is_correct {
            let mut cache = self.cache();
            if cache.len() >= MAX_CACHED {
                cache.clear();
            }
            cache.insert(digest);
        }
        is_correct
    }

    fn cache(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn credentials(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") || encoded.len() > MAX_CREDENTIALS {
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
