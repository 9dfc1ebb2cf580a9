//! How grave a log message is.

use super::mcp::scan;

/// The gravity of a log message (RFC 5424), from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Whether a message with these raw params is for who wants messages from this level on. One of a level that is not known
    /// is passed on: nothing says that it is not wanted.
    #[must_use]
    pub fn lets_through(self, params: &[u8]) -> bool {
        let name = scan::member(params, "level").and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        name.as_deref()
            .and_then(Self::parse)
            .is_none_or(|level| level >= self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_let_through_by_their_level() {
        let wanted = LogLevel::parse("warning").unwrap();
        for (params, passes) in [
            (r#"{"level":"info","data":1.00}"#, false),
            (r#"{"level":"warning"}"#, true),
            (r#"{"data":{},"level":"emergency"}"#, true),
            (r#"{"level":"fatal"}"#, true),
            ("{}", true),
        ] {
            assert_eq!(wanted.lets_through(params.as_bytes()), passes, "{params}");
        }
        assert_eq!(LogLevel::parse("loud"), None);
        assert!(LogLevel::ALL.is_sorted());
    }
}
