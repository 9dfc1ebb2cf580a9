//! Values that must not be shown.

use std::fmt;

/// A secret. Its `Debug` and `Display` hide it; [`Secret::expose`] is where it gets out.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself: for the one place that uses it, never for logs, errors or answers.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_wherever_it_is_formatted() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "(hidden) (hidden) (hidden)"
        );
        assert_eq!(secret.expose(), "hunter2");
    }
}
