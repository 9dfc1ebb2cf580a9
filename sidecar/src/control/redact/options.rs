//! Command lines: the values of options that name secrets, as `--password x`, `--password=x`.

use std::borrow::Cow;

use tools::json::{Kind, Node};

use super::{ParamsMode, Redactor, mask};

/// Goes through the arguments of a command line, one after the other.
#[derive(Debug, Default)]
pub(super) struct Values {
    is_value: bool,
}

impl Values {
    /// From which byte on the next argument is a secret; `None`: it is none. What is no text is no argument.
    pub(super) fn next(&mut self, argument: Option<&str>, names: impl Fn(&str) -> bool) -> Option<usize> {
        let was_value = std::mem::take(&mut self.is_value);
        let argument = argument?;
        if was_value {
            return Some(0);
        }
        if !argument.starts_with('-') {
            return None;
        }
        let (option, value) = match argument.split_once('=') {
            Some((option, _)) => (option, Some(option.len() + 1)),
            None => (argument, None),
        };
        if !names(option.trim_start_matches('-')) {
            return None;
        }
        self.is_value = value.is_none();
        value
    }
}

/// An argument whose text from a byte on is a secret.
pub(super) fn masked(argument: &str, from: usize) -> String {
    let (shown, secret) = argument.split_at_checked(from).unwrap_or(("", argument));
    format!("{shown}{}", mask(secret.len()))
}

impl Redactor {
    /// The arguments of a program as a record may hold them; `None`: not at all. `arguments` are those of the call, of which they
    /// were made: what is masked there is masked here.
    pub fn argv(&self, argv: &[String], arguments: Option<Node<'_>>) -> Option<Vec<String>> {
        match self.mode {
            ParamsMode::Full => Some(argv.to_vec()),
            ParamsMode::Redacted => Some(self.redacted_argv(argv, arguments)),
            ParamsMode::Digest => None,
        }
    }

    /// The arguments of a program with secrets masked, whatever the mode: what an approver sees.
    pub fn redacted_argv(&self, argv: &[String], arguments: Option<Node<'_>>) -> Vec<String> {
        let mut hidden = Vec::new();
        if let Some(arguments) = arguments {
            self.hidden(arguments, &mut Vec::new(), &mut hidden);
        }
        let mut values = Values::default();
        argv.iter()
            .map(
                |argument| match values.next(Some(argument), |key| self.names(key)) {
                    Some(from) => masked(argument, from),
                    None if hidden.iter().any(|text| text == argument) => mask(argument.len()),
                    None => self.patterns.masked(argument).into_owned(),
                },
            )
            .collect()
    }

    /// Every text below a key or path that is masked.
    fn hidden<'n>(&self, node: Node<'n>, path: &mut Vec<Cow<'n, str>>, found: &mut Vec<String>) {
        if self.hides(path) {
            texts(node, found);
            return;
        }
        for element in node.elements() {
            self.hidden(element, path, found);
        }
        for (key, value) in node.members() {
            path.push(key);
            self.hidden(value, path, found);
            path.pop();
        }
    }
}

fn texts(node: Node<'_>, found: &mut Vec<String>) {
    match node.kind() {
        Kind::String => found.extend(node.as_str().map(Cow::into_owned)),
        Kind::Number => found.push(node.raw_str().to_owned()),
        Kind::Array => node.elements().for_each(|element| texts(element, found)),
        Kind::Object => node.members().for_each(|(_, value)| texts(value, found)),
        Kind::Null | Kind::Bool => {}
    }
}

#[cfg(test)]
mod tests {
    use tools::json::{Document, Limits};

    use super::*;

    #[test]
    fn values_of_options_that_name_secrets_are_masked_in_arguments_and_argument_vectors() {
        let text = r#"{"args":["--password","hunter2","-x","--api-key=abc","plain"],"flags":{"token":"t0p","n":"pr"},"deep":{"n":"own"}}"#;
        let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
        let redactor = Redactor::new(ParamsMode::Redacted, ["flags.n"]).unwrap();
        let params = redactor.redacted(document.root());
        for secret in ["hunter2", "abc", "t0p", "\"pr\""] {
            assert!(!params.contains(secret), "{params}");
        }
        assert!(params.contains("plain") && params.contains("--password") && params.contains("own"));
        let argv: Vec<String> = [
            "run",
            "--token",
            "t0p",
            "-n",
            "pr",
            "--password",
            "hunter2",
            "--api-key=abc",
            "plain",
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        let shown = redactor.argv(&argv, Some(document.root())).unwrap();
        assert_eq!(
            shown,
            [
                "run",
                "--token",
                "[redacted, 3 bytes]",
                "-n",
                "[redacted, 2 bytes]",
                "--password",
                "[redacted, 7 bytes]",
                "--api-key=[redacted, 3 bytes]",
                "plain"
            ]
        );
        let digest = Redactor::new(ParamsMode::Digest, []).unwrap();
        assert_eq!(digest.argv(&argv, Some(document.root())), None);
    }
}
