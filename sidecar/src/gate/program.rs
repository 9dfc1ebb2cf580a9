//! Calls of programs: which commands one can mean, and the decision about all of them.
//!
//! A program is asked for a command in several ways, and its argument vector alone says which one runs. So every name that the
//! vector can have is decided as the name that was called is, and the strictest decision holds. There is no other way to decide:
//! each is the decision of [`Gate::decide`] about a name.

use std::borrow::Cow;
use std::sync::Arc;

use policy::decide::{Call, Commands, Decision, Floor, FloorKind, Meant};
use policy::document::Action;
use tools::classify::{Classification, SideEffectSource};
use tools::id::{ToolName, UpstreamName};
use tools::json::Node;
use tools::model::{Tool, ToolKind};
use tools::program::{ArgumentError, Meaning, ProgramCall};

use super::Gate;
use super::subject::{Judged, Subject};
use crate::control::Snapshot;
use crate::upstream::CliUpstream;

/// What nothing of a program gets past that is no longer configured.
const GONE: Floor = Floor {
    kind: FloorKind::Dispatcher,
    action: Action::Deny,
};

/// What a call of a program means.
#[derive(Debug)]
pub(super) struct Commanded {
    /// The argument vector, or why the arguments are none.
    pub(super) call: Result<Arc<ProgramCall>, ArgumentError>,
    /// The floor of the name that was called.
    pub(super) floor: Option<Floor>,
    /// Every other command that the vector can mean.
    others: Vec<Other>,
    /// What the called name and all others are judged to do together, where that differs from what the called one is.
    together: Option<Box<Classification>>,
}

/// A command that may be what runs, beside the name that was called.
#[derive(Debug)]
struct Other {
    tool: Arc<Tool>,
    judged: Judged,
    floor: Option<Floor>,
}

impl Commanded {
    pub(super) fn together(&self) -> Option<&Classification> {
        self.together.as_deref()
    }

    /// The governed name of the call, where another was called.
    pub(super) fn effective(&self) -> Option<&ToolName> {
        self.others.first().map(|other| &other.tool.name)
    }

    /// Further names that the leading words of the argument vector make.
    fn related(&self, upstream: Option<&UpstreamName>) -> Vec<ToolName> {
        let (Ok(call), Some(upstream)) = (&self.call, upstream) else {
            return Vec::new();
        };
        let related = call.meaning.related.iter();
        related
            .filter_map(|local| ToolName::of(upstream, local).ok())
            .collect()
    }
}

impl Other {
    fn meant(&self) -> Meant<'_> {
        Meant {
            name: &self.tool.name,
            classification: self.judged.classification(&self.tool),
            floor: self.floor,
        }
    }
}

impl Gate {
    /// The tool that is served under a governed name: a declared one, or a command of a program that has a dispatcher.
    pub(super) fn served(&self, name: &str) -> Option<Arc<Tool>> {
        self.registry.lookup(name).or_else(|| self.undeclared(name))
    }

    fn undeclared(&self, name: &str) -> Option<Arc<Tool>> {
        let of = |upstream: &str, local: &str| self.upstreams.get(upstream)?.program()?.undeclared(local);
        let dotted = name
            .split_once('.')
            .and_then(|(upstream, local)| of(upstream, local));
        let found = dotted.or_else(|| {
            name.match_indices("__").find_map(|(at, separator)| {
                let (upstream, rest) = name.split_at_checked(at)?;
                of(upstream, rest.strip_prefix(separator)?)
            })
        });
        found.map(Arc::new)
    }

    /// What a call of a program means; `None` for a tool that is no program's.
    pub(super) fn commanded(&self, tool: &Arc<Tool>, arguments: Option<Node<'_>>) -> Option<Arc<Commanded>> {
        if tool.kind != ToolKind::Cli {
            return None;
        }
        let upstream = tool.upstream.as_ref()?;
        let Some(program) = self
            .upstreams
            .get(upstream.as_str())
            .and_then(|found| found.program().cloned())
        else {
            return Some(Arc::new(Commanded {
                call: Err(ArgumentError::NoTool {
                    name: tool.local_name().to_owned(),
                }),
                floor: Some(GONE),
                others: Vec::new(),
                together: None,
            }));
        };
        let asked = program.program().asked(tool.local_name());
        let call = program.program().call(tool.local_name(), arguments).map(Arc::new);
        let mut commanded = Commanded {
            floor: asked
                .is_none_or(|asked| asked.has_floor())
                .then(|| program.floor()),
            others: Vec::new(),
            together: None,
            call,
        };
        if let Ok(call) = &commanded.call {
            match self.others(&program, tool, &call.meaning, arguments) {
                Ok(others) => commanded.others = others,
                Err(error) => commanded.call = Err(error),
            }
        }
        if !commanded.others.is_empty() {
            commanded.together = Some(Box::new(together(tool, arguments, &commanded.others)));
        }
        Some(Arc::new(commanded))
    }

    fn others(
        &self,
        program: &Arc<CliUpstream>,
        called: &Arc<Tool>,
        meaning: &Meaning,
        arguments: Option<Node<'_>>,
    ) -> Result<Vec<Other>, ArgumentError> {
        let mut others = Vec::new();
        for named in &meaning.names {
            if named.local == called.local_name() {
                continue;
            }
            let name = format!("{}.{}", program.name(), named.local);
            // A name that cannot be decided about lets nothing run.
            let tool = self.served(&name).ok_or_else(|| ArgumentError::NoTool {
                name: named.local.clone(),
            })?;
            others.push(Other {
                judged: Judged::call(&tool, arguments),
                floor: named.declared.is_none().then(|| program.floor()),
                tool,
            });
        }
        Ok(others)
    }

    /// The strictest of the decision about the called name and those about every command that the call can mean.
    pub(super) fn strictest(&self, view: &Snapshot, subject: &Subject<'_>, called: Decision) -> Decision {
        let Some(commanded) = &subject.commanded else {
            return called;
        };
        let classification = subject.classification();
        let commands = Commands {
            called: &subject.tool.name,
            others: commanded.others.iter().map(Other::meant).collect(),
            related: commanded.related(subject.tool.upstream.as_ref()),
            together: &classification,
        };
        let about = |name: &ToolName, classification: &Classification, floor| {
            self.about(view, subject, name, classification, floor)
        };
        commands.strictest(&view.policies, called, about).decision
    }

    /// What is known of the other commands that the call can mean is what it was decided by.
    pub(super) fn others_are_as_judged(&self, subject: &Subject<'_>) -> bool {
        let mut others = subject.commanded.iter().flat_map(|commanded| &commanded.others);
        others.all(|other| {
            self.served(other.tool.name.as_str()).is_some_and(|tool| {
                tool.fingerprint == other.tool.fingerprint
                    && Judged::call(&tool, subject.arguments) == other.judged
            })
        })
    }

    /// The decision about one name of the call.
    fn about(
        &self,
        view: &Snapshot,
        subject: &Subject<'_>,
        name: &ToolName,
        classification: &Classification,
        floor: Option<Floor>,
    ) -> Decision {
        let call = Call {
            tool: name,
            ..subject.as_policy_call(classification, floor.as_slice())
        };
        self.decide_about(view, subject, &call)
    }
}

/// What the called name and the commands that the call can mean are judged to do together: everything that one of them does.
fn together(called: &Tool, arguments: Option<Node<'_>>, others: &[Other]) -> Classification {
    let judged = Judged::call(called, arguments);
    let mut all = judged.classification(called).clone();
    for other in others {
        let one = other.judged.classification(&other.tool);
        all.risks = all.risks.union(one.risks);
        all.possible_risks = all.possible_risks.union(one.possible_risks);
        if one.risk > all.risk || all.capability.is_none() {
            all.capability.clone_from(&one.capability);
        }
        all.plain_read &= one.plain_read;
        if one.side_effect.source != SideEffectSource::Default {
            all.side_effect = one.side_effect;
        }
        for reason in &one.reasons {
            if !all.reasons.contains(reason) {
                all.reasons.push(reason.clone());
            }
        }
    }
    all.risk = all.risks.gravest();
    all
}

impl Subject<'_> {
    /// Where the tool is a program's, its arguments make an argument vector that may be run.
    pub(super) fn is_program_call(&self) -> Result<(), &ArgumentError> {
        match self.commanded.as_ref().map(|commanded| &commanded.call) {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error),
        }
    }

    /// The argument vector, where the call is one of a program.
    pub(super) fn program_call(&self) -> Option<&Arc<ProgramCall>> {
        self.commanded.as_ref()?.call.as_ref().ok()
    }

    /// What the call is named in messages: the tool, and the commands that it can mean where these have other names.
    pub(super) fn named(&self) -> Cow<'_, str> {
        let others = self.commanded.iter().flat_map(|commanded| &commanded.others);
        let others: Vec<&str> = others.map(|other| other.tool.name.as_str()).collect();
        if others.is_empty() {
            return Cow::Borrowed(self.tool.name.as_str());
        }
        Cow::Owned(format!("{} (as {})", self.tool.name, others.join(" or ")))
    }
}
