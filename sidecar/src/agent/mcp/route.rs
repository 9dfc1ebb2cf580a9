//! Which upstream a request is for that is no tool call, and what that upstream calls the thing asked for.

use std::sync::Arc;

use tools::id::UpstreamName;
use tools::model::Tool;
use tools::operation::Operation;

use crate::agent::names::is_written_as;
use crate::agent::state::AgentState;
use crate::registry::Listed;
use crate::upstream::Offers;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) upstream: UpstreamName,
    /// What the upstream knows it by.
    pub(super) own: String,
}

impl Route {
    /// What is governed about the request.
    pub(super) fn subject(&self, state: &AgentState, operation: Operation) -> Option<Arc<Tool>> {
        let list = match operation {
            Operation::Resource => Some(Listed::Resources),
            Operation::Prompt => Some(Listed::Prompts),
            Operation::Tool | Operation::Method => None,
        };
        let name = format!("{}.{}{}", self.upstream, operation.marker(), self.own);
        let declared = list.and_then(|list| state.gate.registry().entry(list, &name));
        declared.or_else(|| {
            Tool::request(&self.upstream, operation, &self.own, None)
                .ok()
                .map(Arc::new)
        })
    }
}

/// The prompt that an agent means.
pub(super) fn prompt(state: &AgentState, name: &str) -> Option<Route> {
    let with = state.gate.registry().upstreams_with(|offers| offers.prompts);
    let found = state
        .names
        .meant_prompt(name)
        .find_map(|(written, own)| Some((named(&with, written)?, own)));
    let (upstream, own) = found.or_else(|| only_declaring(state, &with, Listed::Prompts, name))?;
    Some(Route {
        upstream,
        own: own.to_owned(),
    })
}

/// The resource, or the template, that an agent means by a URI. A URI without its upstream, as results carry them, is
/// understood where only one upstream can be meant.
pub(super) fn resource(state: &AgentState, uri: &str) -> Option<Route> {
    let with = state.gate.registry().upstreams_with(|offers| offers.resources);
    let exact = |written: &str| named(&with, written);
    let loose = |written: &str| {
        with.iter()
            .find(|name| is_written_as(name.as_str(), written))
            .cloned()
    };
    let found = state
        .names
        .meant_uri(uri)
        .find_map(|(written, own)| Some((exact(written).or_else(|| loose(written))?, own)))
        .filter(|(_, own)| !own.is_empty());
    let (upstream, own) = found
        .or_else(|| only_declaring(state, &with, Listed::Resources, uri))
        .or_else(|| only_with_template(state, &with, uri))
        .or_else(|| only(with).map(|upstream| (upstream, uri)))?;
    Some(Route {
        upstream,
        own: own.to_owned(),
    })
}

/// The upstream that a method is for which names none: the only one there is, or the only one that offers it.
pub(super) fn method(state: &AgentState, offers: impl Fn(&Offers) -> bool) -> Option<UpstreamName> {
    only(state.gate.registry().upstreams_with(offers))
}

fn named(all: &[UpstreamName], written: &str) -> Option<UpstreamName> {
    all.iter().find(|name| name.as_str() == written).cloned()
}

fn only<T>(all: Vec<T>) -> Option<T> {
    let mut all = all.into_iter();
    let first = all.next();
    first.filter(|_| all.next().is_none())
}

fn only_declaring<'n>(
    state: &AgentState,
    with: &[UpstreamName],
    list: Listed,
    own: &'n str,
) -> Option<(UpstreamName, &'n str)> {
    let marker = match list {
        Listed::Resources | Listed::Templates => Operation::Resource.marker(),
        Listed::Prompts => Operation::Prompt.marker(),
        Listed::Tools => "",
    };
    let registry = state.gate.registry();
    let declaring = with.iter().filter(|upstream| {
        registry
            .entry(list, &format!("{upstream}.{marker}{own}"))
            .is_some()
    });
    only(declaring.cloned().collect()).map(|upstream| (upstream, own))
}

fn only_with_template<'n>(
    state: &AgentState,
    with: &[UpstreamName],
    uri: &'n str,
) -> Option<(UpstreamName, &'n str)> {
    let templates = state.gate.registry().entries(Listed::Templates);
    let has_one = |upstream: &&UpstreamName| {
        templates.iter().any(|template| {
            template.upstream.as_ref() == Some(*upstream)
                && (template.asked_for() == uri || is_made_by(template.asked_for(), uri))
        })
    };
    only(with.iter().filter(has_one).cloned().collect()).map(|upstream| (upstream, uri))
}

/// Whether a URI can come of a template (RFC 6570): expressions are taken for any text.
fn is_made_by(template: &str, uri: &str) -> bool {
    let mut pattern = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        pattern.push_str(before);
        pattern.push('*');
        let Some((_, behind)) = after.split_once('}') else {
            return false;
        };
        rest = behind;
    }
    pattern.push_str(rest);
    pattern
        .parse::<policy::glob::Glob>()
        .is_ok_and(|glob| glob.matches(uri))
}

/// Whether a URI has segments that a server may take away, so that it reads another resource than the URI says. One that
/// its upstream declares so is what it says.
pub(super) fn has_dot_segments(uri: &str) -> bool {
    let decoded = percent_decoded(uri);
    let path = decoded.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\'])
        .any(|segment| matches!(segment, "." | ".."))
}

fn percent_decoded(uri: &str) -> String {
    let mut bytes = uri.as_bytes().iter();
    let mut out = Vec::with_capacity(uri.len());
    while let Some(&byte) = bytes.next() {
        let rest = bytes.as_slice();
        let escaped = rest
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) => {
                out.push(escaped);
                bytes.nth(1);
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_of_a_template_is_told_from_others() {
        assert!(is_made_by("demo://text/{id}", "demo://text/7"));
        assert!(is_made_by("{scheme}://x{?q,r}", "a://x?q=1"));
        assert!(!is_made_by("demo://text/{id}", "demo://blob/7"));
        assert!(!is_made_by("demo://text/{id", "demo://text/7"));
        assert!(!is_made_by("demo://[x]/{id}", "demo://[x]/7"));
    }

    #[test]
    fn dot_segments_are_seen_through_their_escapes() {
        for uri in [
            "file:///data/../etc/passwd",
            "file:///data/%2e%2E/etc",
            "file:///data/.%2e%2fetc",
            "file:///data\\..\\etc",
            "file:///a/./b",
            "..",
        ] {
            assert!(has_dot_segments(uri), "{uri}");
        }
        for uri in [
            "file:///data/..a/b.txt",
            "demo://x?q=../y",
            "note:a..b",
            "a://%",
            "a://%zz",
        ] {
            assert!(!has_dot_segments(uri), "{uri}");
        }
    }
}
