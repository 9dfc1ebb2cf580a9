//! The verifier: one record or checkpoint after the other.

use super::fields::{self, Malformed};
use super::found::Found;
use super::lines::RecordLine;
use super::options::Options;
use super::order::{Order, Suspicion, order, successor};
use super::report::{Damage, DamageKind, Report};
use super::sources::Sources;
use crate::checkpoint::{Checkpoint, CheckpointError, PublicKeys, SignedCheckpoint};
use crate::hash::Hash;
use crate::link::{Head, KEY_CHANGE, MacKey, Position, link, split_header};
use crate::payload::payload_digest;

/// Verifies a chain as it is read. See [`Verifier::finish`].
#[derive(Debug)]
pub struct Verifier {
    public_keys: PublicKeys,
    keys: Vec<MacKey>,
    /// Checkpoints that have not been passed yet, in order; the last comes first.
    ahead: Vec<Checkpoint>,
    head: Head,
    /// The last checkpoint of the input.
    last_checkpoint: Option<Checkpoint>,
    /// The id of the key that the last record's MAC was made with.
    key_id: Option<String>,
    /// The last record's header, kept while MACs are there: it may announce a new key.
    last_header: String,
    sources: Sources,
    skip_source_links: bool,
    items: u64,
    suspicion: Option<Suspicion>,
    report: Report,
}

impl Verifier {
    /// A verifier that has read nothing yet.
    pub fn new(options: Options) -> Self {
        let mut ahead = options.checkpoints;
        ahead.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.position()));
        let mut verifier = Self {
            public_keys: options.public_keys,
            keys: options.keys,
            ahead,
            head: Head::GENESIS,
            last_checkpoint: None,
            key_id: None,
            last_header: String::new(),
            sources: Sources::default(),
            skip_source_links: options.skip_source_links,
            items: 0,
            suspicion: None,
            report: Report::default(),
        };
        if let Some(start) = options.start {
            verifier.start_after(&start);
        }
        verifier
    }

    /// How many records and checkpoints have been read.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The first damage found until now. Its kind may still become a more exact one.
    pub fn damage(&self) -> Option<&Damage> {
        self.report.damage.as_ref()
    }

    /// Reads the next record.
    pub fn record(&mut self, record: &RecordLine<'_>) {
        self.items += 1;
        self.report.records += 1;
        if self.report.damage.is_some() {
            self.look_again(record);
        } else if let Err(found) = self.check(record) {
            self.suspicion = Some(Suspicion {
                expected: found.expected,
                stated: found.stated,
                hash: record.hash,
                is_fresh: true,
            });
            self.damaged(found);
        }
    }

    /// Reads a checkpoint that stands in the input.
    pub fn checkpoint(&mut self, signed: &SignedCheckpoint) {
        self.items += 1;
        if self.report.damage.is_some() {
            return;
        }
        if let Err(found) = self.check_checkpoint(signed) {
            self.damaged(found);
        }
    }

    /// Reads something that is neither a record nor a checkpoint: it stands where the next record should.
    pub fn unreadable(&mut self, detail: impl Into<String>) {
        self.items += 1;
        self.report.records += 1;
        if self.report.damage.is_none() {
            let at = successor(self.head.at);
            self.damaged(Found::new(DamageKind::Changed, at, detail));
        }
    }

    /// The end of the input.
    pub fn finish(mut self) -> Report {
        if self.report.damage.is_none() {
            let missing = self.ahead.first().map(Checkpoint::position);
            if let Some(last) = missing.filter(|last| *last > self.head.at) {
                let detail = format!("a checkpoint speaks of records up to {last}");
                self.damaged(Found::new(DamageKind::Truncated, successor(self.head.at), detail));
            } else if let Some(first) = self.report.first
                && !self.keys.is_empty()
                && self.report.macs == 0
            {
                let detail = "no record has a MAC, although a key was given";
                self.damaged(Found::new(DamageKind::Downgraded, first, detail));
            }
        }
        self.report.sources = self.sources.count();
        self.report
    }

    fn damaged(&mut self, found: Found) {
        self.report.damage = Some(Damage {
            at: found.at,
            kind: found.kind,
            item: self.items,
            detail: found.detail,
        });
    }

    fn look_again(&mut self, record: &RecordLine<'_>) {
        let (Some(suspicion), Some(damage)) = (&mut self.suspicion, &mut self.report.damage) else {
            return;
        };
        let Some(kind) = suspicion.look(damage.kind, record.header, &record.hash) else {
            return;
        };
        damage.at = suspicion.expected;
        damage.kind = kind;
        damage.detail = match kind {
            DamageKind::Reordered => format!("the record stands further on, as item {}", self.items),
            DamageKind::Inserted => format!("another record with its number follows, as item {}", self.items),
            _ => "the record's number is not the one that was linked".to_owned(),
        };
    }

    fn check(&mut self, record: &RecordLine<'_>) -> Result<(), Found> {
        let expected = successor(self.head.at);
        let Some((at, source)) = split_header(record.header) else {
            return Err(Found::new(
                DamageKind::Changed,
                expected,
                "the header is not laid out as records are",
            ));
        };
        match order(self.head.at, at) {
            Order::Next => check_hash(at, &self.head.hash, record)?,
            Order::NewGeneration => self.enter_generation(at, record)?,
            Order::Ahead(missing) => {
                let detail = format!("record {at} follows {}", self.head.at);
                let found = Found::new(DamageKind::Missing, missing, detail);
                return Err(Found {
                    expected,
                    stated: at,
                    ..found
                });
            }
            Order::Behind => {
                let detail = format!("record {at} follows {}", self.head.at);
                let found = Found::new(DamageKind::Inserted, at, detail);
                return Err(Found {
                    expected,
                    stated: at,
                    ..found
                });
            }
        }
        self.pass_checkpoints(at, &record.hash)?;
        self.check_mac(at, record)?;
        self.check_payload(at, source, record.payload)?;
        if !self.skip_source_links {
            self.check_source(at, source)?;
        }
        self.advance(at, record);
        Ok(())
    }

    fn advance(&mut self, at: Position, record: &RecordLine<'_>) {
        if self.report.first.is_none() {
            self.report.first = Some(at);
            self.report.generations = 1;
        }
        self.head = Head {
            at,
            hash: record.hash,
        };
        self.report.last = Some(at);
        self.report.head = Some(record.hash);
    }

    /// The first record of a later generation links the last trusted checkpoint.
    fn enter_generation(&mut self, at: Position, record: &RecordLine<'_>) -> Result<(), Found> {
        let links = |hash: &Hash| link(hash, record.header.as_bytes()) == record.hash;
        let earlier = |checkpoint: &&Checkpoint| checkpoint.generation < at.generation;
        let newest = self.ahead.iter().find(earlier).map(Checkpoint::position);
        let known = self.ahead.iter().chain(&self.last_checkpoint).filter(earlier);
        let linked = known
            .map(|checkpoint| (checkpoint.position(), checkpoint.hash))
            .chain([(self.head.at, self.head.hash)])
            .find(|(_, hash)| links(hash));
        let Some((linked, _)) = linked else {
            let detail = "the first record of the generation links to no checkpoint that is known";
            return Err(Found::new(DamageKind::Forked, at, detail));
        };
        if let Some(newest) = newest.filter(|newest| *newest > linked && *newest > self.head.at) {
            let detail = format!(
                "a checkpoint speaks of records up to {newest}, which the next generation does not link"
            );
            return Err(Found::new(DamageKind::Truncated, successor(self.head.at), detail));
        }
        if linked.generation == self.head.at.generation {
            self.report.lost += linked.seq.saturating_sub(self.head.at.seq);
        }
        self.ahead
            .retain(|checkpoint| checkpoint.generation >= at.generation);
        self.report.generations += 1;
        Ok(())
    }

    /// Checkpoints at this place must state this hash.
    fn pass_checkpoints(&mut self, at: Position, hash: &Hash) -> Result<(), Found> {
        while let Some(checkpoint) = self.ahead.pop_if(|checkpoint| checkpoint.position() <= at) {
            if checkpoint.position() < at {
                self.report.checkpoints_unchecked += 1;
            } else if checkpoint.hash == *hash {
                self.report.checkpoints += 1;
                self.last_checkpoint = Some(checkpoint);
            } else {
                return Err(forked(at));
            }
        }
        Ok(())
    }

    fn check_mac(&mut self, at: Position, record: &RecordLine<'_>) -> Result<(), Found> {
        let Some(mac) = &record.mac else {
            return match &self.key_id {
                Some(key) => {
                    let detail = format!("the record has no MAC, those before have one by key {key:?}");
                    Err(Found::new(DamageKind::Downgraded, at, detail))
                }
                None => Ok(()),
            };
        };
        let wrong = |detail: String| Err(Found::new(DamageKind::WrongKey, at, detail));
        let id = record.key_id.unwrap_or_default();
        match &self.key_id {
            Some(last) if last != id && !announces_key(&self.last_header) => {
                return wrong(format!("key {id:?} follows {last:?}, but no record announces it"));
            }
            Some(last) if last == id => {}
            Some(_) | None => self.key_id = Some(id.to_owned()),
        }
        self.last_header.clear();
        self.last_header.push_str(record.header);
        if self.keys.is_empty() {
            self.report.macs_unchecked += 1;
            return Ok(());
        }
        match self.keys.iter().find(|key| key.id() == id) {
            Some(key) if key.verifies(&record.hash, mac) => self.report.macs += 1,
            Some(_) => return wrong(format!("the MAC is not that of key {id:?}")),
            None => return wrong(format!("the MAC is by key {id:?}, which was not given")),
        }
        Ok(())
    }

    fn check_payload(&mut self, at: Position, source: &str, payload: Option<&str>) -> Result<(), Found> {
        let changed = |detail: &str| Err(Found::new(DamageKind::Changed, at, detail));
        match (fields::payload_digest(source), payload) {
            (Some(digest), Some(text)) => match payload_digest(text) {
                Ok(found) if found.to_string() == digest => self.report.payloads += 1,
                Ok(_) => return changed("the payload is not the one that the header speaks of"),
                Err(_) => return changed("the payload cannot be read"),
            },
            (Some(_), None) => self.report.payloads_erased += 1,
            (None, Some(_)) => return changed("there is a payload, but the header speaks of none"),
            (None, None) => {}
        }
        Ok(())
    }

    fn check_source(&mut self, at: Position, source: &str) -> Result<(), Found> {
        let link = match fields::source_link(source) {
            Ok(Some(link)) => link,
            Ok(None) => return Ok(()),
            Err(Malformed) => {
                return Err(Found::new(
                    DamageKind::Changed,
                    at,
                    "the header is not laid out as records are",
                ));
            }
        };
        self.sources
            .check(&link, source, at.generation)
            .map_err(|(kind, detail)| Found::new(kind, at, detail))
    }

    fn check_checkpoint(&mut self, signed: &SignedCheckpoint) -> Result<(), Found> {
        let here = self.head.at;
        let wrong = |error: &CheckpointError| {
            let at = signed.statement().map_or(here, |statement| statement.position());
            Found::new(DamageKind::WrongKey, at, error.to_string())
        };
        let checkpoint = if self.public_keys.is_empty() {
            self.report.signatures_unchecked += 1;
            signed
                .statement()
                .map_err(|error| Found::new(DamageKind::Changed, here, error.to_string()))?
        } else {
            self.report.signatures += 1;
            self.public_keys.verify(signed).map_err(|error| wrong(&error))?
        };
        self.take_checkpoint(checkpoint)
    }

    fn take_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), Found> {
        let at = checkpoint.position();
        if self.report.first.is_none() && self.head == Head::GENESIS && at > self.head.at {
            self.start_after(&checkpoint);
            return self.pass_checkpoints(at, &checkpoint.hash);
        }
        if at == self.head.at {
            if checkpoint.hash != self.head.hash {
                return Err(forked(at));
            }
            self.report.checkpoints += 1;
        } else if at > self.head.at {
            let place = self.ahead.partition_point(|other| other.position() > at);
            self.ahead.insert(place, checkpoint.clone());
        } else {
            self.report.checkpoints_unchecked += 1;
        }
        self.last_checkpoint = Some(checkpoint);
        Ok(())
    }

    fn start_after(&mut self, checkpoint: &Checkpoint) {
        self.head = Head {
            at: checkpoint.position(),
            hash: checkpoint.hash,
        };
        self.report.start = Some(checkpoint.position());
        self.sources.set_partial();
        self.last_checkpoint = Some(checkpoint.clone());
    }
}

fn check_hash(at: Position, prev: &Hash, record: &RecordLine<'_>) -> Result<(), Found> {
    if link(prev, record.header.as_bytes()) == record.hash {
        return Ok(());
    }
    let detail = "the hash is not that of the record and the one before";
    Err(Found::new(DamageKind::Changed, at, detail))
}

fn forked(at: Position) -> Found {
    Found::new(
        DamageKind::Forked,
        at,
        "a checkpoint states another hash for this place",
    )
}

/// Whether the record says that the next one is under another key.
fn announces_key(header: &str) -> bool {
    header.contains("\"kind\":\"act\"") && header.contains(&format!("\"tool\":\"{KEY_CHANGE}\""))
}
