//! Windows in memory: all there is in one process, and what this replica knows of those that are counted elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use net::clock::Clock;

use super::window::Window;
use crate::store::quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaUse};

/// Windows that are held at a time.
const MOST_WINDOWS: usize = 100_000;

/// Where a window was counted last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere by this process.
    #[default]
    Unknown,
    /// Not in Redis, since its connection of this number was lost.
    Base(u64),
    /// In Redis, by its connection of this number.
    Redis(u64),
}

/// One window, and what is known of its place.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) window: Window,
    pub(super) place: Place,
    /// Up to where the lots in Redis were seen, by its clock.
    pub(super) seen: u64,
    /// When it was last entered in Redis' list of windows.
    pub(super) listed_at: Option<Duration>,
}

/// The windows of this process.
#[derive(Debug)]
pub(super) struct Memory {
    clock: Clock,
    length: Duration,
    entries: Mutex<HashMap<QuotaKey, Entry>>,
}

impl Memory {
    pub(super) fn new(clock: Clock, length: Duration) -> Self {
        Self {
            clock,
            length,
            entries: Mutex::default(),
        }
    }

    /// Works on one window, made if need be. `None`: there is room for no more.
    pub(super) fn with<T>(&self, key: &QuotaKey, work: impl FnOnce(&mut Entry, Duration) -> T) -> Option<T> {
        let now = self.clock.boot_now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(key) {
            if entries.len() >= MOST_WINDOWS {
                entries.retain(|_, entry| !entry.window.is_idle(now));
            }
            if entries.len() >= MOST_WINDOWS {
                return None;
            }
        }
        let entry = entries.entry(key.clone()).or_insert_with(|| Entry {
            window: Window::new(self.length),
            place: Place::Unknown,
            seen: 0,
            listed_at: None,
        });
        Some(work(entry, now))
    }

    pub(super) fn uses(&self, filter: &QuotaFilter) -> Vec<QuotaUse> {
        let now = self.clock.boot_now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter_mut()
            .filter(|(key, entry)| filter.covers(key) && !entry.window.is_idle(now))
            .map(|(key, entry)| QuotaUse {
                key: key.clone(),
                used: entry.window.used(now),
            })
            .collect()
    }

    /// Sets windows back to nothing; answers how many.
    pub(super) fn reset(&self, filter: &QuotaFilter) -> u64 {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut touched = 0;
        for (key, entry) in entries.iter_mut() {
            if key.kind == QuotaKind::PerMinute && filter.covers(key) {
                entry.window.reset();
                touched += 1;
            }
        }
        touched
    }
}
