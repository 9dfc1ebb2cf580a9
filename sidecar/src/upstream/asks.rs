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

/// The capability of a client that answers questions as tasks (2025-11-25, basic/utilities/tasks).
const TASKS: &str = "tasks";

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
            // About a question that was answered with a task.
            "tasks/get" | "tasks/result" | "tasks/cancel" => self.sampling || self.elicitation,
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
            "tasks/get" | "tasks/result" | "tasks/cancel" => TASKS,
            _ => return false,
        };
        self.lets_through(method) && scan::member(capabilities, name).is_some_and(|value| value != b"null")
    }

    /// Everything that this allows, as capabilities of a client that can do all of it; `with_tasks` where its revision has them.
    #[must_use]
    pub fn announced(self, with_tasks: bool) -> String {
        let all = [
            (self.sampling, r#""sampling":{}"#),
            (self.elicitation, r#""elicitation":{"form":{},"url":{}}"#),
            (self.roots, r#""roots":{"listChanged":true}"#),
        ];
        let mut members: Vec<_> = all
            .into_iter()
            .filter(|(is_allowed, _)| *is_allowed)
            .map(|(_, member)| member.to_owned())
            .collect();
        let every =
            br#"{"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}"#;
        let tasks = self.tasks_of(every).filter(|_| with_tasks);
        members.extend(tasks.map(|tasks| format!("\"{TASKS}\":{}", String::from_utf8_lossy(&tasks))));
        format!("{{{}}}", members.join(","))
    }

    /// What of an agent's tasks an upstream hears of: which of the questions that it may put can be answered with one. An agent's
    /// list would show it those of other upstreams.
    fn tasks_of(self, tasks: &[u8]) -> Option<Vec<u8>> {
        let requests = scan::member(tasks, "requests")?;
        let kinds = [("sampling", self.sampling), ("elicitation", self.elicitation)];
        let allowed: Vec<Vec<u8>> = kinds
            .into_iter()
            .filter(|(_, is_allowed)| *is_allowed)
            .filter_map(|(kind, _)| {
                Some([b"\"", kind.as_bytes(), b"\":", scan::member(requests, kind)?].concat())
            })
            .collect();
        if allowed.is_empty() {
            return None;
        }
        let cancel = scan::member(tasks, "cancel").map(|raw| [b"\"cancel\":", raw, b","].concat());
        let requests = allowed.join(&b","[..]);
        Some(
            [
                b"{",
                &cancel.unwrap_or_default()[..],
                b"\"requests\":{",
                &requests,
                b"}}",
            ]
            .concat(),
        )
    }

    /// An agent's capabilities as an upstream hears of them: without what is switched off, every other byte as it came.
    /// `with_tasks` where its questions can be answered with tasks.
    #[must_use]
    pub fn of_agent(self, capabilities: &Bytes, with_tasks: bool) -> Bytes {
        let members = || scan::members(capabilities).map_while(Result::ok);
        let is_offered =
            |member: &scan::Member<'_>| self.kind(member) != Some(false) && !member.passes_for(TASKS);
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
        let tasks = scan::member(capabilities, TASKS).and_then(|tasks| self.tasks_of(tasks));
        if let Some(tasks) = tasks.filter(|_| with_tasks) {
            let comma: &[u8] = if out.len() > 1 { b"," } else { b"" };
            out.extend_from_slice(&[comma, b"\"", TASKS.as_bytes(), b"\":", &tasks].concat());
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
            only.of_agent(&raw, true),
            &br#"{"elicitation":{"url":{}},"x":1.00}"#[..]
        );
        let plain = Bytes::from_static(br#"{ "roots":{}}"#);
        assert_eq!(Asks::ALL.of_agent(&plain, true).as_ptr(), plain.as_ptr());
        assert_eq!(Asks::default().announced(true), "{}");
        assert_eq!(
            Asks::of(&[ServerRequest::Roots]).announced(true),
            r#"{"roots":{"listChanged":true}}"#
        );
    }

    #[test]
    fn tasks_of_an_agent_are_offered_for_what_may_be_asked_and_never_listed() {
        let raw = Bytes::from_static(
            br#"{"roots":{},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#,
        );
        assert_eq!(
            Asks::of(&[ServerRequest::Sampling]).of_agent(&raw, true),
            &br#"{"tasks":{"cancel":{},"requests":{"sampling":{"createMessage":{}}}}}"#[..]
        );
        assert_eq!(Asks::ALL.of_agent(&raw, false), &br#"{"roots":{}}"#[..]);
        assert_eq!(
            Asks::of(&[ServerRequest::Roots]).of_agent(&raw, true),
            &br#"{"roots":{}}"#[..]
        );
        assert_eq!(
            Asks::of(&[ServerRequest::Elicitation]).announced(true),
            r#"{"elicitation":{"form":{},"url":{}},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}}}}}"#
        );
        assert!(!Asks::ALL.announced(false).contains("tasks"));
    }

    #[test]
    fn only_known_questions_are_let_through() {
        assert!(Asks::ALL.lets_through("roots/list") && !Asks::ALL.lets_through("tasks/list"));
        let roots = Asks::of(&[ServerRequest::Roots]);
        assert!(Asks::ALL.lets_through("tasks/get") && !roots.lets_through("tasks/get"));
        assert!(Asks::ALL.is_supported(br#"{"tasks":{}}"#, "tasks/get"));
        assert!(!Asks::ALL.is_supported(br#"{"sampling":{}}"#, "tasks/get"));
        assert!(!Asks::default().lets_through("roots/list"));
        assert!(Asks::ALL.is_supported(br#"{"roots":{}}"#, "roots/list"));
        assert!(!Asks::ALL.is_supported(br#"{"roots":null}"#, "roots/list"));
        assert!(!Asks::ALL.is_supported(br#"{"roots":{}}"#, "sampling/createMessage"));
        assert!(Asks::ALL.is_any_of(br#"{"x":1,"sampling":{}}"#));
        assert!(!Asks::ALL.is_any_of(b"{}") && !Asks::default().is_any_of(br#"{"sampling":{}}"#));
    }
}
