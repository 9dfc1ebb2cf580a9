//! The links of the sources' own chains, one for each epoch of each sidecar.

use std::collections::{BTreeMap, HashMap};

use super::fields::SourceLink;
use super::report::DamageKind;
use crate::hash::Hash;

/// Before it there is nothing that a restore could have lost.
const FIRST_GENERATION: u64 = 1;

/// The end of one source's chain.
#[derive(Debug, Clone, Copy)]
struct End {
    n: u64,
    hash: Hash,
    generation: u64,
}

/// The ends of all sources' chains.
#[derive(Debug, Default)]
pub(super) struct Sources {
    ends: HashMap<Box<str>, BTreeMap<u64, End>>,
    /// Set: what came before the input is not known, so an epoch may begin in its middle.
    partial: bool,
}

impl Sources {
    pub(super) fn set_partial(&mut self) {
        self.partial = true;
    }

    pub(super) fn count(&self) -> u64 {
        self.ends.values().map(|epochs| epochs.len() as u64).sum()
    }

    /// Checks one record's link and moves its source's end.
    ///
    /// `source` is the source record's text without its first brace.
    pub(super) fn check(
        &mut self,
        link: &SourceLink<'_>,
        source: &str,
        generation: u64,
    ) -> Result<(), (DamageKind, String)> {
        let end = End {
            n: link.n,
            hash: link
                .stands_for
                .unwrap_or_else(|| Hash::of(&[b"{", source.as_bytes()])),
            generation,
        };
        let Some(epochs) = self.ends.get_mut(link.sidecar) else {
            self.check_first(link, generation)?;
            let epochs = BTreeMap::from([(link.epoch, end)]);
            self.ends.insert(link.sidecar.into(), epochs);
            return Ok(());
        };
        match epochs.get_mut(&link.epoch) {
            Some(last) => {
                check_next(link, last, generation)?;
                *last = end;
            }
            None => {
                self.check_first(link, generation)?;
                if let Some(epochs) = self.ends.get_mut(link.sidecar) {
                    epochs.insert(link.epoch, end);
                }
            }
        }
        Ok(())
    }

    fn check_first(&self, link: &SourceLink<'_>, generation: u64) -> Result<(), (DamageKind, String)> {
        if self.partial || (link.n == 1 && link.prev == Hash::ZERO) {
            return Ok(());
        }
        if link.n == 1 {
            return Err((
                DamageKind::Changed,
                format!("the first record of {} links to another", name(link)),
            ));
        }
        // A restore may have lost the first records of an epoch that goes on in the next generation.
        if generation > FIRST_GENERATION {
            return Ok(());
        }
        let detail = format!("{} begins with number {}, not with 1", name(link), link.n);
        Err((DamageKind::Missing, detail))
    }
}

fn check_next(link: &SourceLink<'_>, last: &End, generation: u64) -> Result<(), (DamageKind, String)> {
    if link.n <= last.n {
        let detail = format!("{} says number {} after {}", name(link), link.n, last.n);
        return Err((DamageKind::Inserted, detail));
    }
    if link.n > last.n + 1 {
        // A restore may have lost records that their source no longer has.
        if generation > last.generation {
            return Ok(());
        }
        let detail = format!("{} says number {} after {}", name(link), link.n, last.n);
        return Err((DamageKind::Missing, detail));
    }
    if link.prev != last.hash {
        let detail = format!(
            "{} links number {} to another record than {}",
            name(link),
            link.n,
            last.n
        );
        return Err((DamageKind::Changed, detail));
    }
    Ok(())
}

fn name(link: &SourceLink<'_>) -> String {
    format!("the source {} in epoch {}", link.sidecar, link.epoch)
}
