//! Texts that look like secrets.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex_automata::meta::Regex;

/// Each is a secret, or ends in one.
const PATTERNS: [&str; 18] = [
    // JSON Web Tokens.
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    // AWS access key ids.
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    // Private keys in PEM form, to their end or to the end of the text.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\z)",
    // GitHub.
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    // GitLab.
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    // Slack.
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bxapp-[A-Za-z0-9-]{10,}",
    // Stripe.
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}",
    // Model providers.
    r"\bsk-[A-Za-z0-9_-]{20,}",
    // Google.
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    // npm, PyPI, Hugging Face.
    r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{30,})",
    // Toolgate's own.
    r"\btg[a-z]?_[A-Za-z0-9_-]{24,}",
    // HTTP credentials.
    r"(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{8,}=*",
    r"(?i:\bbasic\s+)[A-Za-z0-9+/]{12,}=*",
    // The password in a URL.
    r"://[^\s/:@]{1,128}:[^\s/@]{1,256}@",
    // Assignments in code, queries and command lines.
    r#"(?i:\b[a-z0-9_-]*(?:password|passwd|secret|api_?key|access_?key|auth_?token|access_?token))["']?\s*[=:]\s*["']?[^\s"'&,;]{4,}"#,
];

/// The compiled patterns.
#[derive(Debug)]
pub(super) struct Patterns(Option<Regex>);

impl Patterns {
    /// Compiled once per process.
    pub(super) fn shared() -> &'static Self {
        static SHARED: OnceLock<Patterns> = OnceLock::new();
        SHARED.get_or_init(|| {
            let compiled = Regex::new_many(&PATTERNS);
            // A test compiles them. Without them every text is masked as a whole.
            Self(
                compiled
                    .inspect_err(|error| tracing::error!(%error, "the redaction patterns do not compile"))
                    .ok(),
            )
        })
    }

    /// Whether any of a text looks like a secret.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    /// The text with its secrets masked.
    pub(super) fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(regex) = &self.0 else {
            return Cow::Owned(super::mask(text.len()));
        };
        let mut out = String::new();
        let mut rest = 0;
        for found in regex.find_iter(text) {
            out.push_str(text.get(rest..found.start()).unwrap_or_default());
            out.push_str(&super::mask(found.len()));
            rest = found.end();
        }
        if rest == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(rest..).unwrap_or_default());
        Cow::Owned(out)
    }

    #[cfg(test)]
    pub(super) fn is_compiled(&self) -> bool {
        self.0.is_some()
    }
}
