//! The bodies of here-documents.

use super::lexer::{Lexer, Refusal, Script};
use super::word::{Word, is_deceptive};

/// A here-document whose tag was read and whose body comes after the line.
pub(super) struct HereDocument {
    /// The place of the word that its body becomes.
    pub(super) body: usize,
    pub(super) tag: String,
    pub(super) is_literal: bool,
    pub(super) strips_tabs: bool,
}

impl Lexer<'_> {
    pub(super) fn here_document(
        &mut self,
        document: &HereDocument,
        script: &mut Script,
    ) -> Result<(), Refusal> {
        let mut body = String::new();
        loop {
            if self.rest().is_empty() {
                return Err(Refusal::Unterminated("a here-document"));
            }
            let mut line = self.line(document.strips_tabs);
            // In a body that is expanded, lines are joined before the tag is looked for.
            while !document.is_literal
                && line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
            {
                line.pop();
                if self.rest().is_empty() {
                    return Err(Refusal::Unterminated("a here-document"));
                }
                line.push_str(&self.line(false));
            }
            if line == document.tag {
                break;
            }
            body.push_str(&line);
            body.push('\n');
        }
        let word = if document.is_literal {
            self.deceives |= body.chars().any(is_deceptive);
            Word {
                text: body,
                quoted: true,
                ..Word::default()
            }
        } else {
            let mut inner = Lexer::new(&body, self.depth);
            let word = inner.deeper(Lexer::document_body)?;
            self.deceives |= inner.deceives;
            word
        };
        if let Some(place) = script.words.get_mut(document.body) {
            *place = word;
        }
        Ok(())
    }

    fn line(&mut self, strips_tabs: bool) -> String {
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at = (self.at + line.len() + 1).min(self.text.len());
        let line = if strips_tabs {
            line.trim_start_matches('\t')
        } else {
            line
        };
        line.to_owned()
    }
}
