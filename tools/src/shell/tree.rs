//! From tokens to the simple commands of a script, by the shell's grammar.
//!
//! The grammar sees the structure only: reserved words, assignments' names and operators. Every other word is handed to it as a
//! stand-in, so no hostile word reaches it, and found again by its place.

use std::sync::Arc;

use brush_parser::ast::{
    self, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, Program,
};
use brush_parser::{ParserOptions, SourcePosition, SourceSpan, Token as Parsed, parse_tokens};

use super::lexer::{Refusal, Script, Token, is_reserved};
use super::word::Word;

/// How many constructs that can be inside each other one script may have: bounds the parser's stack.
const MAX_OPENERS: usize = 40;
/// How many tokens one script may have.
const MAX_TOKENS: usize = 16 * 1024;

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
    /// Both, or to a descriptor or a file, which the target decides.
    Duplicate,
    /// Text for its input.
    Text,
    /// Output and errors, in shells that know it.
    Both,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Redirect<'s> {
    pub(super) direction: Direction,
    pub(super) target: &'s Word,
}

/// One simple command.
#[derive(Debug, Default)]
pub(super) struct Simple<'s> {
    /// Variables are set, before the command or on their own.
    pub(super) assigns: bool,
    pub(super) words: Vec<&'s Word>,
    pub(super) redirects: Vec<Redirect<'s>>,
}

/// The simple commands of a script.
#[derive(Debug, Default)]
pub(super) struct Tree<'s> {
    pub(super) commands: Vec<Simple<'s>>,
    /// There is more than one pipeline: lists, loops, groups, functions, jobs in the background.
    pub(super) is_compound: bool,
}

/// Parses a script.
pub(super) fn parse(script: &Script) -> Result<Tree<'_>, Refusal> {
    if script.tokens.len() > MAX_TOKENS {
        return Err(Refusal::Unreadable("a script of so many words"));
    }
    let mut openers = 0;
    let mut tokens = Vec::with_capacity(script.tokens.len());
    for (at, token) in script.tokens.iter().enumerate() {
        let (parsed, is_opener) = hand_over(script, at, *token);
        openers += usize::from(is_opener);
        tokens.push(parsed);
    }
    if openers > MAX_OPENERS {
        return Err(Refusal::TooDeep);
    }
    let program = parse_tokens(&tokens, &ParserOptions::default())
        .map_err(|_| Refusal::Unreadable("text that is no shell script"))?;
    let mut walk = Walk {
        script,
        tree: Tree {
            is_compound: has_list(&script.tokens),
            ..Tree::default()
        },
    };
    walk.program(&program)?;
    Ok(walk.tree)
}

/// Whether an operator joins several pipelines. Line ends around the whole text join nothing.
fn has_list(tokens: &[Token]) -> bool {
    let is_end = |token: &&Token| **token == Token::Operator("\n");
    let start = tokens.iter().take_while(is_end).count();
    let end = tokens.iter().rev().take_while(is_end).count();
    let inside = tokens.len().saturating_sub(start + end);
    tokens.iter().skip(start).take(inside).any(|token| {
        matches!(
            token,
            Token::Operator("\n" | "&" | "&&" | "||" | ";" | "|&" | "(" | ")" | ";;" | ";&" | ";;&")
        )
    })
}

fn hand_over(script: &Script, at: usize, token: Token) -> (Parsed, bool) {
    let position = |index: usize| {
        Arc::new(SourcePosition {
            index,
            line: 1,
            column: index,
        })
    };
    // Only a descriptor touches what follows it.
    let end = match token {
        Token::Descriptor(_) => 2 * at + 2,
        _ => 2 * at + 1,
    };
    let span = SourceSpan {
        start: position(2 * at),
        end: position(end),
    };
    match token {
        Token::Operator(operator) => (Parsed::Operator(operator.to_owned(), span), operator == "("),
        Token::Descriptor(number) => (Parsed::Word(number.to_string(), span), false),
        Token::Array(_) => (Parsed::Word("a=".to_owned(), span), true),
        Token::Word(index) => {
            let word = script.words.get(index);
            let plain = word
                .filter(|word| !word.quoted)
                .and_then(Word::certain)
                .unwrap_or("w");
            let is_special = (is_reserved(plain) && !matches!(plain, "[[" | "]]")) || plain == "-p";
            let (text, is_opener) = match word {
                _ if is_special => (plain, plain != "-p" && plain != "!" && plain != "in"),
                Some(word) if word.assigns.is_some() => ("a=w", false),
                _ => ("w", false),
            };
            (Parsed::Word(text.to_owned(), span), is_opener)
        }
    }
}

struct Walk<'s> {
    script: &'s Script,
    tree: Tree<'s>,
}

impl<'s> Walk<'s> {
    fn program(&mut self, program: &Program) -> Result<(), Refusal> {
        program
            .complete_commands
            .iter()
            .try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Result<(), Refusal> {
        for ast::CompoundListItem(and_or, _) in &list.0 {
            self.pipeline(&and_or.first)?;
            for next in &and_or.additional {
                match next {
                    ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) => self.pipeline(pipeline)?,
                }
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), Refusal> {
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirect_list(redirects.as_ref())
            }
            Command::Function(function) => {
                self.compound(&function.body.0)?;
                self.redirect_list(function.body.1.as_ref())
            }
            // INVARIANT: `[[` is read by the lexer and never reaches the grammar.
            Command::ExtendedTest(..) => Err(Refusal::Unreadable("[[")),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Result<(), Refusal> {
        self.tree.is_compound = true;
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(group) => self.list(&group.list),
            CompoundCommand::ForClause(clause) => self.list(&clause.body.list),
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                for branch in clause.elses.iter().flatten() {
                    branch.condition.iter().try_for_each(|list| self.list(list))?;
                    self.list(&branch.body)?;
                }
                Ok(())
            }
            CompoundCommand::CaseClause(clause) => clause
                .cases
                .iter()
                .filter_map(|case| case.cmd.as_ref())
                .try_for_each(|list| self.list(list)),
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
            // INVARIANT: arithmetic is read by the lexer and never reaches the grammar.
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                Err(Refusal::Unreadable("arithmetic"))
            }
        }
    }

    fn simple(&mut self, command: &ast::SimpleCommand) -> Result<(), Refusal> {
        let mut simple = Simple::default();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::IoRedirect(redirect) => simple.redirects.extend(self.redirect(redirect)?),
                Item::AssignmentWord(..) => simple.assigns = true,
                Item::Word(_) | Item::ProcessSubstitution(..) => {
                    return Err(Refusal::Unreadable("a command's beginning"));
                }
            }
        }
        if let Some(name) = &command.word_or_name {
            simple.words.push(self.word(name)?);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::IoRedirect(redirect) => simple.redirects.extend(self.redirect(redirect)?),
                Item::Word(word) | Item::AssignmentWord(_, word) => simple.words.push(self.word(word)?),
                // INVARIANT: the lexer makes a substitution a word.
                Item::ProcessSubstitution(..) => return Err(Refusal::Unreadable("a substitution")),
            }
        }
        self.tree.commands.push(simple);
        Ok(())
    }

    fn redirect_list(&mut self, list: Option<&ast::RedirectList>) -> Result<(), Refusal> {
        let mut simple = Simple::default();
        for redirect in list.iter().flat_map(|list| &list.0) {
            simple.redirects.extend(self.redirect(redirect)?);
        }
        self.tree.commands.push(simple);
        Ok(())
    }

    fn redirect(&self, redirect: &IoRedirect) -> Result<Option<Redirect<'s>>, Refusal> {
        let (direction, target) = match redirect {
            IoRedirect::File(_, kind, target) => {
                let direction = match kind {
                    IoFileRedirectKind::Read => Direction::In,
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber => Direction::Out,
                    IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput => {
                        Direction::Duplicate
                    }
                };
                match target {
                    IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                        (direction, word)
                    }
                    // What `|&` becomes.
                    IoFileRedirectTarget::Fd(_) => return Ok(None),
                    IoFileRedirectTarget::ProcessSubstitution(..) => {
                        return Err(Refusal::Unreadable("a substitution"));
                    }
                }
            }
            IoRedirect::HereDocument(_, document) => (Direction::Text, &document.doc),
            IoRedirect::HereString(_, word) => (Direction::Text, word),
            IoRedirect::OutputAndError(word, _) => (Direction::Both, word),
        };
        let target = self.word(target)?;
        Ok(Some(Redirect { direction, target }))
    }

    /// The word that a stand-in stands for.
    fn word(&self, word: &ast::Word) -> Result<&'s Word, Refusal> {
        let place = word.loc.as_ref().map(|span| span.start.index / 2);
        let index = match place.and_then(|place| self.script.tokens.get(place)) {
            Some(Token::Word(index) | Token::Array(index)) => Some(*index),
            _ => None,
        };
        index
            .and_then(|index| self.script.words.get(index))
            .ok_or(Refusal::Unreadable("a word"))
    }
}
