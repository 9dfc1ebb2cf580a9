//! Signals: what a name, an annotation, a method or a description says about a tool, each with its reason.

use super::name::{Firmness, NameReading};
use super::schema::Arguments;
use super::tool::Declared;
use super::vocabulary::{self, Act};
use super::words::Texts;
use super::{Risk, RiskSet, SideEffect, SideEffectKind, SideEffectSource};

/// Arguments that name a place elsewhere: what has them is about no file of this machine.
const ELSEWHERE: [&[&str]; 4] = [&["owner", "repo"], &["bucket"], &["repository"], &["driveid"]];
/// Verbs that send a file elsewhere.
const OUTWARD: [&str; 4] = ["upload", "push", "publish", "sync"];

/// One thing that was said.
#[derive(Debug)]
pub(super) struct Signal {
    pub(super) act: Act,
    source: SideEffectSource,
    /// Whether it is an annotation or a method, not a word.
    pub(super) is_claim: bool,
    /// Whether a firmer signal of reading beat it.
    is_beaten: bool,
    pub(super) reason: String,
}

/// Everything that was said about a tool.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) all: Vec<Signal>,
    pub(super) is_local: bool,
}

impl Signals {
    pub(super) fn of(
        declared: &Declared<'_>,
        name: &NameReading,
        arguments: &Arguments<'_>,
        is_readable: bool,
        is_mapped: bool,
        is_generic: bool,
    ) -> Self {
        let claims_writing = writes_by_claim(declared, name.is_silent() && !is_mapped);
        // A claim of reading beats what may be a noun; it says nothing where the name cannot be read or where the
        // arguments say what is done.
        let claims_reading = claims_writing.is_empty() && is_readable && !is_generic;
        let read_claims: Vec<Signal> = if claims_reading {
            reads_by_claim(declared)
        } else {
            Vec::new()
        };
        let mut all: Vec<Signal> = Vec::new();
        for said in &name.writes {
            all.push(Signal {
                act: said.act,
                source: SideEffectSource::Name,
                is_claim: false,
                is_beaten: said.firmness == Firmness::Soft && !read_claims.is_empty(),
                reason: format!("name verb {:?}", said.word),
            });
        }
        let is_written = all.iter().any(|signal| !signal.is_beaten);
        if is_written {
            all.extend(name.objects.iter().map(|(act, word)| Signal {
                act: *act,
                source: SideEffectSource::Name,
                is_claim: false,
                is_beaten: false,
                reason: format!("name object {word:?}"),
            }));
        }
        all.retain(|signal| !signal.is_beaten);
        all.extend(claims_writing);
        all.extend(name.read.iter().map(|word| Signal {
            act: Act::Read,
            source: SideEffectSource::Name,
            is_claim: false,
            is_beaten: false,
            reason: format!("name verb {word:?}"),
        }));
        all.extend(read_claims);
        let is_local = is_local(declared, name, arguments);
        Self { all, is_local }
    }

    fn words(&self) -> impl Iterator<Item = &Signal> {
        self.all
            .iter()
            .filter(|signal| !signal.is_claim && signal.act != Act::Read)
    }

    pub(super) fn writes(&self) -> bool {
        self.all.iter().any(|signal| signal.act != Act::Read)
    }

    pub(super) fn reads(&self) -> bool {
        self.all.iter().any(|signal| signal.act == Act::Read)
    }

    /// The gravest thing that is done.
    pub(super) fn gravest(&self) -> Option<Act> {
        let words = self.words().map(|signal| signal.act).max();
        words.or_else(|| self.all.iter().map(|signal| signal.act).max())
    }

    /// The risks that follow; none when nothing was said.
    pub(super) fn risks(&self) -> RiskSet {
        let mut risks: RiskSet = self
            .words()
            .map(|signal| signal.act.risk(self.is_local))
            .collect();
        if self
            .all
            .iter()
            .any(|signal| signal.source == SideEffectSource::Method && signal.act == Act::Delete)
        {
            risks.insert(Risk::Delete);
        }
        if risks.is_empty() {
            risks.extend(self.claim());
        }
        if risks.is_empty() && self.reads() {
            risks.insert(Risk::Read);
        }
        risks
    }

    /// What stays of the risks when a text says what is run.
    pub(super) fn residue(&self) -> RiskSet {
        let words = self.words().filter(|signal| signal.act != Act::Execute);
        words.map(|signal| signal.act.risk(self.is_local)).collect()
    }

    /// What the name says that is worse than a write.
    pub(super) fn grave(&self) -> RiskSet {
        let is_grave = |signal: &&Signal| signal.act > Act::Write;
        self.words()
            .filter(is_grave)
            .map(|signal| signal.act.risk(self.is_local))
            .collect()
    }

    /// The risk that a claim of writing stands for.
    pub(super) fn claim(&self) -> Option<Risk> {
        let claims = self
            .all
            .iter()
            .filter(|signal| signal.is_claim && signal.act != Act::Read);
        claims
            .map(|signal| signal.act)
            .max()
            .map(|act| act.risk(self.is_local))
    }

    /// The effect that the name says.
    pub(super) fn named_effect(&self) -> Option<SideEffect> {
        let words = self.all.iter().filter(|signal| !signal.is_claim);
        gravest_effect(words)
    }

    /// The effect that annotations and method claim.
    pub(super) fn claimed_effect(&self) -> Option<SideEffect> {
        gravest_effect(self.all.iter().filter(|signal| signal.is_claim))
    }
}

fn gravest_effect<'s>(signals: impl Iterator<Item = &'s Signal>) -> Option<SideEffect> {
    signals
        .map(|signal| SideEffect {
            kind: signal.act.side_effect(),
            source: signal.source,
        })
        .reduce(|known, other| {
            if gravity(other.kind) > gravity(known.kind) {
                other
            } else {
                known
            }
        })
}

/// The graver of two effects, the first when they are alike.
pub(super) fn graver(first: Option<SideEffect>, second: Option<SideEffect>) -> Option<SideEffect> {
    match (first, second) {
        (Some(first), Some(second)) if gravity(second.kind) > gravity(first.kind) => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// `delete` before `admin` before `write`.
fn gravity(kind: SideEffectKind) -> u8 {
    match kind {
        SideEffectKind::Read => 0,
        SideEffectKind::Write => 1,
        SideEffectKind::Admin => 2,
        SideEffectKind::Delete => 3,
    }
}

/// The effect of something with these risks; none when nobody knows.
pub(super) fn effect_of(risks: RiskSet) -> Option<SideEffectKind> {
    if risks.contains(Risk::Delete) {
        return Some(SideEffectKind::Delete);
    }
    if risks.contains(Risk::PermissionChange) {
        return Some(SideEffectKind::Admin);
    }
    let mut rest = risks;
    rest.remove(Risk::Unknown);
    if rest.is_empty() {
        return None;
    }
    rest.remove(Risk::Read);
    Some(if rest.is_empty() {
        SideEffectKind::Read
    } else {
        SideEffectKind::Write
    })
}

/// Words after which a verb of a description says what is done: "to delete", "and sends".
const BEFORE_VERBS: [&str; 9] = ["and", "or", "then", "to", "can", "will", "may", "that", "which"];

/// The effect that the first sentence of a description names.
pub(super) fn described(description: Option<&str>) -> Option<SideEffect> {
    let mut says_what_is_done = true;
    let mut gravest: Option<SideEffectKind> = None;
    for token in Texts::first_sentence(description?).split_whitespace() {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let act = described_act(&word).filter(|_| says_what_is_done);
        if let Some(kind) = act.map(Act::side_effect)
            && gravest.is_none_or(|known| gravity(kind) > gravity(known))
        {
            gravest = Some(kind);
        }
        says_what_is_done = token.ends_with([',', ':', '/', ';'])
            || word.ends_with("ly")
            || BEFORE_VERBS.contains(&word.as_str());
    }
    Some(SideEffect {
        kind: gravest?,
        source: SideEffectSource::Description,
    })
}

/// What a verb of a description does, as in "delete" or "deletes"; running something says nothing of its effect.
fn described_act(word: &str) -> Option<Act> {
    let plain = |word: &str| vocabulary::verb(word).filter(|verb| verb.is_plain() && verb.writes());
    plain(word)
        .or_else(|| plain(word.strip_suffix('s')?))
        .or_else(|| plain(word.strip_suffix("es")?))
        .map(|verb| verb.act)
        .filter(|act| *act != Act::Execute)
}

fn writes_by_claim(declared: &Declared<'_>, is_silent: bool) -> Vec<Signal> {
    let claim = |act, source, reason: String| Signal {
        act,
        source,
        is_claim: true,
        is_beaten: false,
        reason,
    };
    let mut claims = Vec::new();
    if declared.hints.destructive == Some(true) {
        // Servers say this of whatever changes something. It stands for a removal where no word says what is done.
        let act = if is_silent { Act::Delete } else { Act::Write };
        let reason = "annotation destructiveHint".to_owned();
        claims.push(claim(act, SideEffectSource::Annotation, reason));
    }
    if declared.hints.read_only == Some(false) {
        let reason = "annotation readOnlyHint: false".to_owned();
        claims.push(claim(Act::Write, SideEffectSource::Annotation, reason));
    }
    if let Some(method) = declared.method.filter(|method| !is_safe(method)) {
        let is_delete = method.eq_ignore_ascii_case("DELETE");
        let act = if is_delete { Act::Delete } else { Act::Write };
        claims.push(claim(act, SideEffectSource::Method, format!("method {method}")));
    }
    claims
}

fn reads_by_claim(declared: &Declared<'_>) -> Vec<Signal> {
    let claim = |source, reason: String| Signal {
        act: Act::Read,
        source,
        is_claim: true,
        is_beaten: false,
        reason,
    };
    let hint = declared.hints.read_only == Some(true);
    let annotation = hint.then(|| claim(SideEffectSource::Annotation, "annotation readOnlyHint".to_owned()));
    let method = declared
        .method
        .filter(|method| is_safe(method))
        .map(|method| claim(SideEffectSource::Method, format!("method {method}")));
    annotation.into_iter().chain(method).collect()
}

fn is_safe(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS"]
        .iter()
        .any(|safe| method.eq_ignore_ascii_case(safe))
}

/// Whether what is written stays on this machine: files, and worlds that say they are closed.
fn is_local(declared: &Declared<'_>, name: &NameReading, arguments: &Arguments<'_>) -> bool {
    if name
        .writes
        .iter()
        .any(|said| OUTWARD.contains(&said.word.as_str()))
    {
        return false;
    }
    let is_elsewhere = ELSEWHERE
        .iter()
        .any(|named| named.iter().all(|key| arguments.has(key)));
    match declared.hints.open_world {
        Some(is_open) => !is_open,
        None if is_elsewhere => false,
        None => name
            .domain
            .is_some_and(|domain| domain.name == "file" && !domain.is_remote),
    }
}
