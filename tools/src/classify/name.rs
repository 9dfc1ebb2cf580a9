//! What a tool's name says: its head word, and the verbs of writing beside it.

use super::vocabulary::{self, Act, Domain, Place, Verb};

/// Words after which a word that is also a noun is a verb.
const JOINTS: [&str; 3] = ["and", "or", "then"];

/// How firmly a word says writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Firmness {
    /// It is never a noun, or it follows "and", "or", "then".
    Firm,
    /// It is a noun too: a claim of reading beats it.
    Soft,
}

/// One thing that a name says is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) act: Act,
    pub(super) firmness: Firmness,
    pub(super) word: String,
}

/// What a name says.
#[derive(Debug, Clone, Default)]
pub(super) struct NameReading {
    /// The verb of reading that is the head.
    pub(super) read: Option<String>,
    /// Everything but reading that is done.
    pub(super) writes: Vec<Said>,
    /// Things that make the writing graver, and how grave.
    pub(super) objects: Vec<(Act, String)>,
    pub(super) domain: Option<Domain>,
}

impl NameReading {
    /// Reads the words of a name.
    pub(super) fn of(words: &[String]) -> Self {
        let mut reading = Self {
            domain: words.iter().find_map(|word| vocabulary::domain(word)),
            ..Self::default()
        };
        let head = head(words);
        for (at, word) in words.iter().enumerate() {
            let Some(verb) = vocabulary::verb(word) else {
                continue;
            };
            let is_head = head == Some(at);
            if !verb.writes() {
                if is_head {
                    reading.read = Some(word.clone());
                }
                continue;
            }
            let is_joined = at
                .checked_sub(1)
                .and_then(|before| words.get(before))
                .is_some_and(|before| JOINTS.contains(&before.as_str()));
            let firmness = if verb.is_plain() || is_joined {
                Firmness::Firm
            } else if is_head {
                Firmness::Soft
            } else {
                continue;
            };
            reading.writes.push(Said {
                act: verb.act,
                firmness,
                word: word.clone(),
            });
        }
        reading.objects = objects(words, &reading.writes);
        reading
    }

    /// Whether nothing says what is done.
    pub(super) fn is_silent(&self) -> bool {
        self.read.is_none() && self.writes.is_empty()
    }
}

/// What a value of an action argument, read as a name, says is done. The head of a value is its first verb.
pub(super) fn acts_of_value(words: &[String], takes_nouns: bool) -> Vec<(Act, String)> {
    let reading = NameReading::of(words);
    let writes = reading
        .writes
        .into_iter()
        .filter(|said| takes_nouns || said.firmness == Firmness::Firm)
        .map(|said| (said.act, said.word));
    let acts: Vec<_> = writes.chain(reading.objects).collect();
    if acts.is_empty() {
        return reading.read.map(|word| (Act::Read, word)).into_iter().collect();
    }
    acts
}

/// The position of the word that decides what the name says.
fn head(words: &[String]) -> Option<usize> {
    let verbs: Vec<(usize, Verb)> = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| Some((at, vocabulary::verb(word)?)))
        .filter(|(at, verb)| verb.place != Place::Last || at + 1 == words.len())
        .collect();
    let (first, verb) = verbs.first().copied()?;
    let later = || verbs.iter().skip(1).copied();
    let last = || later().find(|(at, _)| at + 1 == words.len());
    let plain = || later().find(|(_, verb)| verb.is_plain());
    match verb.place {
        Place::Anywhere | Place::Last => Some(first),
        // As the first word it is the verb; behind a noun it may be a noun too: workflow_run_list.
        Place::Head if first == 0 || !verb.writes() => Some(first),
        Place::Head => match last() {
            Some((at, verb)) if verb.is_plain() => Some(at),
            Some(_) | None => Some(first),
        },
        Place::HeadIfAlone => {
            match plain().or_else(|| last().filter(|(_, verb)| verb.place != Place::HeadIfAlone)) {
                Some((at, _)) => Some(at),
                None => Some(first),
            }
        }
    }
}

fn objects(words: &[String], writes: &[Said]) -> Vec<(Act, String)> {
    let mut found = Vec::new();
    for object in vocabulary::objects() {
        let is_written = writes.iter().any(|said| match &object.verbs {
            Some(verbs) => verbs.contains(&said.word.as_str()),
            None => said.act != Act::Delete,
        });
        let thing = words.iter().find(|word| object.things.contains(&word.as_str()));
        if let Some(thing) = thing.filter(|_| is_written) {
            let already = writes.iter().any(|said| said.act == object.act);
            if !already && !found.iter().any(|(act, _)| *act == object.act) {
                found.push((object.act, thing.clone()));
            }
        }
    }
    found
}
