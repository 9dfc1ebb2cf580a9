//! What a recorded call of a program can mean, by what its record keeps.

use tools::classify::Classification;
use tools::id::ToolName;
use tools::json::Node;
use tools::program::{KnownProgram, Meaning};

use super::{MASK, Recorded};
use crate::catalogue::Catalogue;
use crate::decide::{Commands, Floor, FloorKind, Meant};
use crate::document::Action;

/// The commands that a recorded call can mean beside the name that was called; none where the tool is no program's.
#[derive(Debug, Default)]
pub(super) struct Meanings {
    others: Vec<Other>,
    related: Vec<ToolName>,
}

#[derive(Debug)]
struct Other {
    name: ToolName,
    classification: Classification,
    floor: Option<Floor>,
}

impl Meanings {
    /// # Errors
    /// When the record does not keep enough to say it.
    pub(super) fn of(
        catalogue: &Catalogue,
        recorded: &Recorded,
        arguments: Node<'_>,
    ) -> Result<Self, String> {
        let program = catalogue.program(&recorded.tool);
        let Some(program) = program.filter(KnownProgram::has_commands) else {
            return Ok(Self::default());
        };
        let argv = recorded
            .argv
            .as_deref()
            .ok_or("its argument vector was not kept, which says what it means")?;
        let meaning = meaning(&program, argv)?;
        let governed =
            |local: &str| ToolName::of(program.upstream(), local).map_err(|error| error.to_string());
        let mut meanings = Self::default();
        for named in &meaning.names {
            if named.local == recorded.tool.local() {
                continue;
            }
            let name = governed(&named.local)?;
            let known = catalogue.get_or_unknown(&name);
            if known.tool.upstream.is_none() {
                return Err(format!("it can mean {name}, which the program no longer offers"));
            }
            meanings.others.push(Other {
                classification: known.assess(Some(arguments)).0,
                floor: named.declared.is_none().then(|| floor(&program)),
                name,
            });
        }
        for local in &meaning.related {
            meanings.related.push(governed(local)?);
        }
        Ok(meanings)
    }

    /// Whether nothing else can run than what was called.
    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    pub(super) fn commands<'c>(&'c self, called: &'c ToolName, together: &'c Classification) -> Commands<'c> {
        let others = self.others.iter().map(|other| Meant {
            name: &other.name,
            classification: &other.classification,
            floor: other.floor,
        });
        Commands {
            called,
            others: others.collect(),
            related: self.related.clone(),
            together,
        }
    }
}

fn floor(program: &KnownProgram) -> Floor {
    Floor {
        kind: FloorKind::Dispatcher,
        // What cannot be read counts as the strictest.
        action: program
            .floor()
            .and_then(|floor| floor.parse().ok())
            .unwrap_or(Action::Deny),
    }
}

/// What an argument vector can mean, unless that depends on what was redacted in it.
fn meaning(program: &KnownProgram, argv: &[String]) -> Result<Meaning, String> {
    let read = |argv: &[String]| program.meaning(argv).map_err(|error| error.to_string());
    let meaning = read(argv)?;
    // It may have been a word, an option, or neither.
    for stand_in in ["x", "-x"] {
        let other: Vec<String> = argv
            .iter()
            .map(
                |argument| match argument.contains(MASK) && !argument.starts_with('-') {
                    true => stand_in.to_owned(),
                    false => argument.clone(),
                },
            )
            .collect();
        if other != argv && read(&other).as_ref() != Ok(&meaning) {
            return Err("an argument was redacted that may name its command".to_owned());
        }
    }
    Ok(meaning)
}
