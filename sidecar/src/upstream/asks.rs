//! What an upstream may ask agents for.

use bytes::Bytes;
use config::model::ServerRequest;

use super::mcp::scan;

/// The kinds of questions that an upstream may put to agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// `sampling/createMessage`
    pub sampling: bool,
    /// `elicitation/create`
    pub elicitation: bool,
    /// `roots/list`
    pub roots: bool,
}

/// Capabilities of a client that promise something which this side does not keep: tasks of the client's own.
const NOT_OFFERED: &str = "tasks";

impl Asks {
    /// Everything.
    pub const ALL: Self = Self {
        sampling: true,
        elicitation: true,
        roots: true,
    };

    /// What is configured.
    #[must_use]
    pub fn of(configured: &[ServerRequest]) -> Self {
        let has = |kind| configured.contains(&kind);
        Self {
            sampling: has(ServerRequest::Sampling),
            elicitation: has(ServerRequest::Elicitation),
            roots: has(ServerRequest::Roots),
        }
    }

    /// Whether a request of this method is let through.
    #[must_use]
    pub fn lets_through(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => self.elicitation,
            "roots/list" => self.roots,
            _ => false,
        }
    }

    /// Whether an agent with these capabilities can be asked for anything.
    #[must_use]
    pub fn is_any_of(self, capabilities: &[u8]) -> bool {
        scan::members(capabilities)
            .map_while(Result::ok)
            .any(|member| self.kind(&member) == Some(true))
    }

    /// Whether an agent with these capabilities can be asked by a request of this method.
    #[must_use]
    pub fn is_supported(self, capabilities: &[u8], method: &str) -> bool {
        let name = match method {
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            _ => return false,
        };
        self.lets_through(method) && scan::member(capabilities, name).is_some_and(|value| value != b"null")
    }

    /// Everything that this allows, as capabilities of a client that can do all of it.
    #[must_use]
    pub fn announced(self) -> String {
        let all = [
            (self.sampling, r#""sampling":{}"#),
            (self.elicitation, r#""elicitation":{"form":{},"url":{}}"#),
            (self.roots, r#""roots":{"listChanged":true}"#),
        ];
        let members: Vec<_> = all
            .into_iter()
            .filter(|(is_allowed, _)| *is_allowed)
            .map(|(_, member)| member)
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// An agent's capabilities as an upstream hears of them: without what is switched off, every other byte as it came.
    #[must_use]
    pub fn of_agent(self, capabilities: &Bytes) -> Bytes {
        let members = || scan::members(capabilities).map_while(Result::ok);
        let is_offered =
            |member: &scan::Member<'_>| self.kind(member) != Some(false) && !member.passes_for(NOT_OFFERED);
        if members().all(|member| is_offered(&member)) {
            return capabilities.clone();
        }
        let mut out = b"{".to_vec();
        for member in members().filter(is_offered) {
            if out.len() > 1 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(member.key);
            out.extend_from_slice(b"\":");
            out.extend_from_slice(member.value);
        }
        out.push(b'}');
        Bytes::from(out)
    }

    /// Whether a capability is one of the kinds, and allowed.
    fn kind(self, member: &scan::Member<'_>) -> Option<bool> {
        [
            ("sampling", self.sampling),
            ("elicitation", self.elicitation),
            ("roots", self.roots),
        ]
        .into_iter()
        .find(|(name, _)| member.passes_for(name))
        .map(|(_, is_allowed)| is_allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_not_offered_and_the_rest_stays_as_it_came() {
        let raw = Bytes::from_static(
            br#"{ "sampling":{"tools":{}}, "elicitation" : {"url":{}},"roots":{},"tasks":{},"x":1.00}"#,
        );
        let only = Asks::of(&[ServerRequest::Elicitation]);
        assert_eq!(
            only.of_agent(&raw),
            &br#"{"elicitation":{"url":{}},"x":1.00}"#[..]
        );
        let plain = Bytes::from_static(br#"{ "roots":{}}"#);
        assert_eq!(Asks::ALL.of_agent(&plain).as_ptr(), plain.as_ptr());
        assert_eq!(Asks::default().announced(), "{}");
        assert_eq!(
            Asks::of(&[ServerRequest::Roots]).announced(),
            r#"{"roots":{"listChanged":true}}"#
        );
    }

    #[test]
    fn only_known_questions_are_let_through() {
        assert!(Asks::ALL.lets_through("roots/list") && !Asks::ALL.lets_through("tasks/get"));
        assert!(!Asks::default().lets_through("roots/list"));
        assert!(Asks::ALL.is_supported(br#"{"roots":{}}"#, "roots/list"));
        assert!(!Asks::ALL.is_supported(br#"{"roots":null}"#, "roots/list"));
        assert!(!Asks::ALL.is_supported(br#"{"roots":{}}"#, "sampling/createMessage"));
        assert!(Asks::ALL.is_any_of(br#"{"x":1,"sampling":{}}"#));
        assert!(!Asks::ALL.is_any_of(b"{}") && !Asks::default().is_any_of(br#"{"sampling":{}}"#));
    }
}
