//! All keys of the installation, opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use chain::checkpoint::{CheckpointSigner, PublicKey as CheckpointKey, PublicKeys};
use net::clock::Clock;
use proto::v1::PublicKey;
use serde_json::json;

use super::hex;
use super::master::{MasterKey, MasterKeyError};
use super::signer::{Secret, Signer};
use crate::core::Core;
use crate::store::keys::{KeyRow, SealedKey};
use crate::store::{Act, Store, StoreError};

const CHECKPOINT: &str = "checkpoint";
const SNAPSHOT: &str = "snapshot";
const CREDENTIAL: &str = "credential";
const DIGEST: &str = "digest:";
/// Between two looks for keys that another replica made.
const SELDOM: Duration = Duration::from_secs(2);
/// Between two looks for keys without an occasion.
const LOOK: Duration = Duration::from_secs(30);
/// Not a key: its id names the installation.
const INSTALLATION: &str = "installation";

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The master key does not do.
    #[error(transparent)]
    Master(#[from] MasterKeyError),
    /// The store failed.
    #[error("cannot read or write the installation's keys: {0}")]
    Store(#[from] StoreError),
    /// The system has no randomness to give.
    #[error("the system's random source failed; no key can be made")]
    Random,
    /// A stored key is not 32 bytes.
    #[error("key {0} is damaged; restore the `keys` table from a backup")]
    Damaged(String),
    /// There is no such kind of key.
    #[error("`{0}` is no purpose of a key; rotate checkpoint, snapshot, credential or digest:<namespace>")]
    Purpose(String),
}

struct Opened {
    installation: String,
    checkpoint: Arc<CheckpointSigner>,
    snapshot: Arc<Signer>,
    credential: Secret,
    /// Also retired ones: tokens made under them are good until they expire.
    credentials: HashMap<String, Secret>,
    digests: HashMap<String, Secret>,
    public: Vec<PublicKey>,
}

/// The installation's keys, opened with the master key.
pub struct KeyRing {
    master: MasterKey,
    opened: RwLock<Opened>,
    refreshed: Mutex<Option<Duration>>,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyRing(..)")
    }
}

impl KeyRing {
    /// Opens the keys in the store and makes those that are missing.
    ///
    /// # Errors
    /// When the store fails, or the master key is not the one that the keys were sealed under.
    pub async fn open(store: &dyn Store, master: MasterKey) -> Result<Self, KeyError> {
        for purpose in [CHECKPOINT, SNAPSHOT, CREDENTIAL, INSTALLATION] {
            store.ensure_key(candidate(&master, purpose)?).await?;
        }
        let opened = read(store, &master).await?;
        Ok(Self {
            master,
            opened: RwLock::new(opened),
            refreshed: Mutex::new(None),
        })
    }

    /// Reads the keys again: another replica may have rotated one.
    ///
    /// # Errors
    /// As [`KeyRing::open`]; the keys known before stay in use.
    pub async fn refresh(&self, store: &dyn Store) -> Result<(), KeyError> {
        let opened = read(store, &self.master).await?;
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }

    /// [`KeyRing::refresh`], at most once in a while, for callers that strangers can trigger.
    pub async fn refresh_seldom(&self, store: &dyn Store, clock: &Clock) {
        let now = clock.boot_now();
        {
            let mut last = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| now.saturating_sub(last) < SELDOM) {
                return;
            }
            *last = Some(now);
        }
        if let Err(error) = self.refresh(store).await {
            tracing::warn!(%error, "the installation's keys could not be read again");
        }
    }

    /// Makes a new active key for a purpose: `checkpoint`, `snapshot`, `credential` or `digest:<namespace>`. Answers its id.
    ///
    /// # Errors
    /// When the purpose is none, or the store fails.
    pub async fn rotate(&self, store: &dyn Store, purpose: &str, by: &str) -> Result<String, KeyError> {
        let is_known = [CHECKPOINT, SNAPSHOT, CREDENTIAL].contains(&purpose) || purpose.starts_with(DIGEST);
        if !is_known {
            return Err(KeyError::Purpose(purpose.to_owned()));
        }
        let key = candidate(&self.master, purpose)?;
        let act = Act::new(
            "mesh.key_rotate",
            by,
            json!({"purpose": purpose, "key_id": key.id}),
        );
        let row = store.rotate_key(key, act).await?;
        self.refresh(store).await?;
        Ok(row.key.id)
    }

    /// What signs snapshots and leases.
    #[must_use]
    pub fn snapshot_signer(&self) -> Arc<Signer> {
        Arc::clone(&self.read().snapshot)
    }

    /// What signs checkpoints.
    #[must_use]
    pub fn checkpoint_signer(&self) -> Arc<CheckpointSigner> {
        Arc::clone(&self.read().checkpoint)
    }

    /// Names the installation, for good; stands in checkpoints as their origin.
    #[must_use]
    pub fn installation(&self) -> String {
        self.read().installation.clone()
    }

    /// What signs credentials now.
    #[must_use]
    pub fn credential_key(&self) -> Secret {
        self.read().credential.clone()
    }

    /// A credential key by its id, retired ones included.
    #[must_use]
    pub fn credential_key_by_id(&self, id: &str) -> Option<Secret> {
        self.read().credentials.get(id).cloned()
    }

    /// The public keys by which snapshots and checkpoints verify, retired ones included.
    #[must_use]
    pub fn public_keys(&self) -> Vec<PublicKey> {
        self.read().public.clone()
    }

    /// The public keys by which checkpoints verify, retired ones included.
    #[must_use]
    pub fn checkpoint_keys(&self) -> PublicKeys {
        let opened = self.read();
        let of_checkpoints = opened.public.iter().filter(|key| key.purpose == CHECKPOINT);
        of_checkpoints
            .filter_map(|key| CheckpointKey::from_bytes(key.ed25519.as_ref().try_into().ok()?).ok())
            .collect()
    }

    /// The key of argument digests of a namespace, made at its first use.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn digest_key(&self, store: &dyn Store, namespace: &str) -> Result<Secret, KeyError> {
        if let Some(secret) = self.read().digests.get(namespace).cloned() {
            return Ok(secret);
        }
        let row = store
            .ensure_key(candidate(&self.master, &format!("{DIGEST}{namespace}"))?)
            .await?;
        let secret = open_secret(&self.master, &row)?;
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.digests.insert(namespace.to_owned(), secret.clone());
        Ok(secret)
    }

    fn read(&self) -> RwLockReadGuard<'_, Opened> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn candidate(master: &MasterKey, purpose: &str) -> Result<SealedKey, KeyError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|_| KeyError::Random)?;
    let (id, public) = match purpose {
        CHECKPOINT | SNAPSHOT => {
            let public = CheckpointSigner::from_seed(&secret).public_key();
            (public.id(), public.as_bytes().to_vec())
        }
        _ => {
            let mut suffix = [0; 8];
            getrandom::fill(&mut suffix).map_err(|_| KeyError::Random)?;
            let kind = purpose.split(':').next().unwrap_or(purpose);
            (format!("{kind}-{}", hex::encode(&suffix)), Vec::new())
        }
    };
    let sealed = master.seal(&id, &secret)?;
    Ok(SealedKey {
        id,
        purpose: purpose.to_owned(),
        sealed,
        public,
    })
}

fn open_secret(master: &MasterKey, row: &KeyRow) -> Result<Secret, KeyError> {
    let id = row.key.id.clone();
    let bytes = master.open(&id, &row.key.sealed)?;
    let key = bytes.try_into().map_err(|_| KeyError::Damaged(id.clone()))?;
    Ok(Secret { id, key })
}

async fn read(store: &dyn Store, master: &MasterKey) -> Result<Opened, KeyError> {
    let mut found = Found::default();
    for row in store.keys(None).await? {
        let is_active = row.retired_at.is_none();
        found.take(&row.key.purpose, is_active, open_secret(master, &row)?);
    }
    found.finish()
}

#[derive(Default)]
struct Found {
    installation: Option<String>,
    checkpoint: Option<CheckpointSigner>,
    snapshot: Option<Signer>,
    credential: Option<Secret>,
    credentials: HashMap<String, Secret>,
    digests: HashMap<String, Secret>,
    public: Vec<PublicKey>,
}

impl Found {
    fn take(&mut self, purpose: &str, is_active: bool, secret: Secret) {
        match purpose {
            CHECKPOINT => {
                let signer = CheckpointSigner::from_seed(&secret.key);
                self.public
                    .push(public_key(purpose, &secret.id, &signer.public_key()));
                if is_active {
                    self.checkpoint = Some(signer);
                }
            }
            SNAPSHOT => {
                let signer = Signer::new(secret.id, &secret.key);
                self.public.push(signer.public_key(purpose));
                if is_active {
                    self.snapshot = Some(signer);
                }
            }
            CREDENTIAL => {
                if is_active {
                    self.credential = Some(secret.clone());
                }
                self.credentials.insert(secret.id.clone(), secret);
            }
            INSTALLATION => self.installation = Some(secret.id),
            _ => {
                if let Some(namespace) = purpose.strip_prefix(DIGEST)
                    && is_active
                {
                    self.digests.insert(namespace.to_owned(), secret);
                }
            }
        }
    }

    fn finish(self) -> Result<Opened, KeyError> {
        let missing = |purpose: &str| KeyError::Damaged(format!("for {purpose}"));
        Ok(Opened {
            installation: self.installation.ok_or_else(|| missing(INSTALLATION))?,
            checkpoint: Arc::new(self.checkpoint.ok_or_else(|| missing(CHECKPOINT))?),
            snapshot: Arc::new(self.snapshot.ok_or_else(|| missing(SNAPSHOT))?),
            credential: self.credential.ok_or_else(|| missing(CREDENTIAL))?,
            credentials: self.credentials,
            digests: self.digests,
            public: self.public,
        })
    }
}

fn public_key(purpose: &str, id: &str, key: &CheckpointKey) -> PublicKey {
    PublicKey {
        id: id.to_owned(),
        purpose: purpose.to_owned(),
        ed25519: key.as_bytes().to_vec().into(),
    }
}

/// Looks now and then for keys that another replica made, until the shutdown.
pub(crate) async fn keep_fresh(core: Arc<Core>) {
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = core.keys.refresh(&*core.store).await {
            tracing::debug!(%error, "the installation's keys could not be read again");
        }
    }
}
