//! SQL text: which tables and columns it names, and what its statements do.
//!
//! The text is read by a parser of the database's own language. What the parser could read otherwise than the
//! database (see [`guard`]), what is not parsed whole, and what is beyond a bound is not believed at all.

mod dialect;
mod effect;
mod expression;
mod factor;
mod functions;
mod guard;
mod names;
mod reading;
mod scope;
mod statement;
mod walk;

pub use dialect::Dialect;

use sqlparser::ast::{Statement, Visit as _};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::{Extraction, MAX_SQL};
use walk::Walk;

/// Statements, queries and expressions inside each other, at most.
const MAX_DEPTH: usize = 48;

/// How a text is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'s> {
    /// The database's language.
    pub(super) dialect: Dialect,
    /// The schema of tables that are named without one.
    pub(super) schema: Option<&'s str>,
    /// Functions that the operator vouches for.
    pub(super) functions: &'s [String],
}

/// Reads an SQL text.
pub(super) fn read(text: &str, setting: &Setting<'_>) -> Extraction {
    // The parser is not ours and is given hostile text: if it breaks, the text is not read, and the call is judged by that.
    let parsed = std::panic::catch_unwind(|| parse(text, setting.dialect));
    let statements = match parsed {
        Ok(Ok(statements)) => statements,
        Ok(Err(reason)) => return Extraction::unknown(reason),
        Err(_) => return Extraction::unknown("the parser of SQL broke on this text"),
    };
    if statements.is_empty() {
        return Extraction::unknown("the text holds no statement");
    }
    let mut walk = Walk::new(setting);
    // The walk goes on to the end: there is nothing to break off with.
    let _ = statements.visit(&mut walk);
    walk.finish()
}

fn parse(text: &str, dialect: Dialect) -> Result<Vec<Statement>, String> {
    if text.len() > MAX_SQL {
        return Err(format!(
            "the SQL text has {} bytes; at most {MAX_SQL} are read",
            text.len()
        ));
    }
    guard::check_text(text, dialect)?;
    let language = dialect.language();
    let tokens = Tokenizer::new(language, text)
        .tokenize_with_location()
        .map_err(|error| format!("the SQL text cannot be read: {}", shortened(&error.to_string())))?;
    guard::check_tokens(&tokens, text, dialect)?;
    let mut parser = Parser::new(language)
        .with_recursion_limit(MAX_DEPTH)
        .with_tokens_with_locations(tokens);
    let statements = parser
        .parse_statements()
        .map_err(|error| format!("the SQL text cannot be parsed: {}", shortened(&error.to_string())))?;
    // The parser stops at a stray END, whatever comes after it.
    if parser.peek_token_ref().token != Token::EOF {
        return Err("the SQL text goes on after its last statement".to_owned());
    }
    Ok(statements)
}

/// A part of a message, short enough for a record.
fn shortened(text: &str) -> String {
    text.chars().take(160).collect()
}
