//! What is decided about: one call, recognised.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use policy::decide::{Call, Floor};
use policy::stop::CallSubject;
use tools::classify::{Classification, classify_call};
use tools::id::{Namespace, SessionId};
use tools::json::Node;
use tools::model::Tool;
use tools::targets::Targets;

use super::call::Session;
use super::program::Commanded;
use crate::identity::Identity;

/// One call, recognised: who calls what, with which arguments, and what that is judged to do.
#[derive(Debug)]
pub(super) struct Subject<'d> {
    pub(super) namespace: Namespace,
    pub(super) identity: Identity,
    pub(super) session: Option<Session>,
    pub(super) tool: Arc<Tool>,
    /// Whether the tool is served here. Other tools can only be asked about.
    pub(super) is_served: bool,
    pub(super) arguments: Option<Node<'d>>,
    pub(super) judged: Judged,
    /// What the call means, where the tool is a program's.
    pub(super) commanded: Option<Arc<Commanded>>,
}

/// What a call is judged to do and to reach.
#[derive(Debug, PartialEq)]
pub(super) struct Judged {
    /// The call's own classification, where its arguments make it differ from its tool's.
    own: Option<Box<Classification>>,
    targets: Targets,
}

impl Judged {
    /// Nothing but what the tool says.
    pub(super) const AS_TOOL: Self = Self {
        own: None,
        targets: Targets::UNKNOWN,
    };

    /// What it reaches.
    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// What a call of `tool` is judged to do, where this is the judgement of one.
    pub(super) fn classification<'j>(&'j self, tool: &'j Tool) -> &'j Classification {
        self.own.as_deref().unwrap_or(&tool.classification)
    }

    pub(super) fn call(tool: &Tool, arguments: Option<Node<'_>>) -> Self {
        let assessment = classify_call(tool, arguments);
        Self {
            own: match assessment.classification {
                Cow::Borrowed(_) => None,
                Cow::Owned(own) => Some(Box::new(own)),
            },
            targets: assessment.targets,
        }
    }
}

impl<'d> Subject<'d> {
    pub(super) fn classification(&self) -> Cow<'_, Classification> {
        let together = self.commanded.as_ref().and_then(|commanded| commanded.together());
        Cow::Borrowed(together.unwrap_or_else(|| self.judged.classification(&self.tool)))
    }

    pub(super) fn session_id(&self) -> Option<&SessionId> {
        self.session.as_ref().map(|session| &session.id)
    }

    /// The arguments' exact bytes; an absent object counts as an empty one.
    pub(super) fn argument_bytes(&self) -> &'d [u8] {
        self.arguments.map_or(b"{}", Node::raw)
    }

    /// As stops look at it.
    pub(super) fn as_stop_subject(&self) -> CallSubject<'_> {
        CallSubject {
            namespace: &self.namespace,
            agent: &self.identity.agent,
            user: self.identity.user.as_ref(),
            session: self.session_id(),
            upstream: self.tool.upstream.as_ref().map(|upstream| upstream.as_str()),
        }
    }

    /// As policies look at it.
    pub(super) fn as_policy_call<'s>(
        &'s self,
        classification: &'s Classification,
        floors: &'s [Floor],
    ) -> Call<'s> {
        Call {
            namespace: &self.namespace,
            agent: &self.identity.agent,
            user: self.identity.user.as_ref(),
            session: self.session_id(),
            tool: &self.tool.name,
            classification,
            targets: &self.judged.targets,
            arguments: self.arguments,
            floors,
        }
    }
}

/// A subject that outlives its request: what is needed to look at a call in flight again.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) namespace: Namespace,
    pub(super) identity: Identity,
    pub(super) session: Option<Session>,
    pub(super) tool: Arc<Tool>,
    pub(super) arguments: Option<Bytes>,
    pub(super) commanded: Option<Arc<Commanded>>,
}

impl Parked {
    pub(super) fn new(subject: &Subject<'_>, body: &Bytes) -> Self {
        Self {
            namespace: subject.namespace.clone(),
            identity: subject.identity.clone(),
            session: subject.session.clone(),
            tool: Arc::clone(&subject.tool),
            arguments: subject.arguments.map(|node| body.slice_ref(node.raw())),
            commanded: subject.commanded.clone(),
        }
    }

    /// The subject again, over arguments that were parsed again.
    pub(super) fn subject<'d>(&self, arguments: Option<Node<'d>>) -> Subject<'d> {
        Subject {
            namespace: self.namespace.clone(),
            identity: self.identity.clone(),
            session: self.session.clone(),
            judged: Judged::call(&self.tool, arguments),
            tool: Arc::clone(&self.tool),
            is_served: true,
            arguments,
            commanded: self.commanded.clone(),
        }
    }
}
