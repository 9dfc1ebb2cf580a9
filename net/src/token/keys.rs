//! An issuer's keys, fetched and kept fresh.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::key_set::KeySet;
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::outbound::{Bounds, Outbound, OutboundRequest, Redirects};

/// How often keys are fetched.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// The least time between two fetches for key ids that are not known.
const ON_DEMAND: Duration = Duration::from_secs(10);
/// How long a fetch may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest key set that is read.
const MAX_SET_BYTES: usize = 512 * 1024;
/// Tokens that can wait for one fetch; more are refused at once.
const MAX_WAITING: usize = 256;
/// Redirects on the way to a key set.
const MAX_REDIRECTS: usize = 3;

/// Where an issuer's keys are.
#[derive(Debug, Clone)]
pub struct KeyOptions {
    /// The key set's address.
    pub url: Url,
    /// File with a bearer token to show there, read at every fetch.
    pub token_file: Option<PathBuf>,
    /// Time.
    pub clock: Clock,
}

/// What is known of an issuer's keys, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyState {
    /// How many there are; none before the first fetch succeeded.
    pub keys: Option<usize>,
    /// Why the last fetch failed.
    pub problem: Option<String>,
}

/// An issuer's keys. Cheap to clone. [`Keys::follow`] fetches them: without it there are none.
#[derive(Debug, Clone)]
pub struct Keys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: KeyOptions,
    client: Outbound,
    current: ArcSwapOption<KeySet>,
    problem: ArcSwap<Option<String>>,
    wanted: mpsc::Sender<oneshot::Sender<()>>,
}

/// The other end of [`Keys`]: the task that fetches.
#[derive(Debug)]
pub struct Fetcher {
    keys: Keys,
    asked: mpsc::Receiver<oneshot::Sender<()>>,
}

impl Keys {
    /// Keys that are not fetched yet, and what fetches them.
    pub fn new(options: KeyOptions, client: Outbound) -> (Self, Fetcher) {
        let (wanted, asked) = mpsc::channel(MAX_WAITING);
        let keys = Self(Arc::new(Shared {
            options,
            client,
            current: ArcSwapOption::empty(),
            problem: ArcSwap::default(),
            wanted,
        }));
        let fetcher = Fetcher {
            keys: keys.clone(),
            asked,
        };
        (keys, fetcher)
    }

    /// What is known of them.
    pub fn state(&self) -> KeyState {
        KeyState {
            keys: self.current().map(|set| set.len()),
            problem: self.0.problem.load().as_ref().clone(),
        }
    }

    pub(super) fn current(&self) -> Option<Arc<KeySet>> {
        self.0.current.load_full()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    /// Waits for a fetch, if one is due now: at most one in ten seconds, whoever asks.
    pub(super) async fn refresh(&self) {
        let (done, waited) = oneshot::channel();
        if self.0.wanted.try_send(done).is_ok() {
            // The fetch has a bound of its own; the sender goes when it is over.
            let _ = waited.await;
        }
    }

    /// Fetches once. A set that cannot be used never replaces one that can.
    async fn fetch(&self) -> bool {
        match self.fetched().await {
            Ok(set) => {
                let is_first = self.0.current.swap(Some(Arc::new(set))).is_none();
                let had_problem = self.0.problem.swap(Arc::default()).is_some();
                if is_first || had_problem {
                    tracing::info!(host = self.host(), "the keys of a token issuer were fetched");
                }
                true
            }
            Err(problem) => {
                let goes_on = self.0.current.load().is_some();
                tracing::warn!(
                    host = self.host(),
                    problem,
                    "the keys of a token issuer cannot be fetched{}",
                    if goes_on {
                        "; the last ones stay in use"
                    } else {
                        "; no token can be verified"
                    }
                );
                self.0.problem.store(Arc::new(Some(problem)));
                false
            }
        }
    }

    async fn fetched(&self) -> Result<KeySet, String> {
        let Shared { options, client, .. } = self.0.as_ref();
        let bounds = Bounds {
            patience: PATIENCE,
            body_bytes: MAX_SET_BYTES,
        };
        let mut request = OutboundRequest::get(options.url.clone())
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .redirects(Redirects::SameOrigin(MAX_REDIRECTS))
            .bounds(bounds);
        if let Some(path) = options.token_file.clone() {
            let read = tokio::task::spawn_blocking(move || crate::files::read_secret(&path)).await;
            let token = read
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| "the file with the token to show holds no token".to_owned())?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let answer = client.send(request).await.map_err(|error| error.to_string())?;
        if answer.status != StatusCode::OK {
            return Err(format!(
                "{} answered with status {}",
                self.host(),
                answer.status.as_u16()
            ));
        }
        KeySet::read(&answer.body)
            .map_err(|problem| format!("the key set of {} cannot be used: {problem}", self.host()))
    }

    fn host(&self) -> &str {
        self.0.options.url.host_str().unwrap_or_default()
    }
}

impl Fetcher {
    /// Fetches at once, then every five minutes and when it is asked to, until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.go_on() => {}
        }
    }

    async fn go_on(&mut self) {
        let clock = self.keys.clock().clone();
        // The first keys are wanted soon; once there are some, a provider that is away is not asked more often than others.
        let mut first = Backoff::new(Duration::from_millis(250), Duration::from_secs(15));
        let mut later = Backoff::new(ON_DEMAND, REFRESH);
        let mut waiting = None;
        loop {
            let succeeded = self.keys.fetch().await;
            let tried = clock.boot_now();
            // Who waited is told by this.
            drop(waiting.take());
            let pause = if succeeded {
                later.reset();
                REFRESH
            } else if self.keys.current().is_none() {
                first.next_delay()
            } else {
                later.next_delay()
            };
            tokio::select! {
                () = clock.sleep_until(tried.saturating_add(pause)) => {}
                asked = self.due(tried.saturating_add(ON_DEMAND)) => waiting = asked,
            }
        }
    }

    /// Waits until somebody asks, and it is not too soon. Who asks too soon is told at once that there is nothing new.
    async fn due(&mut self, soonest: Duration) -> Option<oneshot::Sender<()>> {
        while let Some(asked) = self.asked.recv().await {
            if self.keys.clock().boot_now() >= soonest {
                return Some(asked);
            }
        }
        // INVARIANT: `self.keys` holds a sender, so the channel does not close.
        std::future::pending().await
    }
}
