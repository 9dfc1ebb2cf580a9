//! What the parser and a database could read differently. Such a text is not believed, however it parses.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::Dialect;

/// Tokens of one text, at most.
const MAX_TOKENS: usize = 100_000;
/// Operators and keywords of one text, at most: each can add a level to what is parsed.
const MAX_LINKS: usize = 4096;
/// Parentheses, brackets and braces inside each other, at most.
const MAX_NESTING: usize = 64;

/// Refuses characters and markers that make a text ambiguous.
pub(super) fn check_text(text: &str, dialect: Dialect) -> Result<(), String> {
    check_characters(text)?;
    if has_open_comment(text) {
        return Err("the SQL text holds a comment that does not end".to_owned());
    }
    let holds = |marker: &str| contains_ignoring_case(text, marker);
    let refused: &[(&str, &str)] = match dialect {
        Dialect::MySql => &[
            ("/*!", "a comment that MySQL executes"),
            ("/*m!", "a comment that MariaDB executes"),
            ("set_var", "a hint that changes how the text is read"),
        ],
        Dialect::Postgres => &[("u&\"", "a name written with Unicode escapes")],
        Dialect::BigQuery => &[("#legacysql", "a switch to another SQL language")],
        Dialect::Sqlite | Dialect::Snowflake => &[],
        Dialect::Generic => &[
            ("/*!", "a comment that some databases execute"),
            ("/*m!", "a comment that some databases execute"),
            ("/*+", "a hint that some databases obey"),
            ("u&\"", "a name that some databases read with Unicode escapes"),
            ("\\", "a backslash, which databases read differently"),
            ("#", "a '#', which begins a comment in some databases only"),
            ("//", "a '//', which begins a comment in some databases only"),
        ],
    };
    if let Some((_, what)) = refused.iter().find(|(marker, _)| holds(marker)) {
        return Err(format!("the SQL text holds {what}"));
    }
    if dialect == Dialect::Generic && has_tight_dashes(text) {
        return Err(
            "the SQL text holds '--' without a space after it, which databases read differently".to_owned(),
        );
    }
    Ok(())
}

/// Whether `/*` stands behind the last `*/`: some databases let it run to the end of the text, others refuse it. Within a
/// string it counts too, which only makes the reading stricter.
fn has_open_comment(text: &str) -> bool {
    text.rsplit_once("/*")
        .is_some_and(|(_, rest)| !rest.contains("*/"))
}

fn check_characters(text: &str) -> Result<(), String> {
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let bad = match c {
            '\n' | '\t' => false,
            '\r' => characters.peek() != Some(&'\n'),
            c if c.is_ascii() => c.is_ascii_control(),
            c => c.is_whitespace() || c.is_control() || is_format(c),
        };
        if bad {
            return Err(format!(
                "the SQL text holds the character U+{:04X}, which is invisible or which databases read differently",
                u32::from(c)
            ));
        }
    }
    Ok(())
}

/// Characters that change how text looks without being seen.
fn is_format(c: char) -> bool {
    matches!(u32::from(c), 0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff)
}

fn contains_ignoring_case(text: &str, marker: &str) -> bool {
    let (text, marker) = (text.as_bytes(), marker.as_bytes());
    text.windows(marker.len())
        .any(|window| window.eq_ignore_ascii_case(marker))
}

fn has_tight_dashes(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.windows(3).any(|window| match window {
        [b'-', b'-', after] => !matches!(after, b' ' | b'\t' | b'\n' | b'\r'),
        _ => false,
    })
}

/// Refuses tokens that databases read differently, and texts beyond the bounds.
pub(super) fn check_tokens(tokens: &[TokenWithSpan], text: &str, dialect: Dialect) -> Result<(), String> {
    if tokens.len() > MAX_TOKENS {
        return Err(format!("the SQL text has more than {MAX_TOKENS} words and signs"));
    }
    let (mut links, mut nesting) = (0_usize, 0_usize);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => nesting += 1,
            Token::RParen | Token::RBracket | Token::RBrace => nesting = nesting.saturating_sub(1),
            token if is_link(token) => links += 1,
            _ => {}
        }
        if nesting > MAX_NESTING {
            return Err(format!("the SQL text is nested more than {MAX_NESTING} deep"));
        }
        check_token(&token.token, text, dialect)?;
    }
    if links > MAX_LINKS {
        return Err(format!(
            "the SQL text has {links} operators and keywords; at most {MAX_LINKS} are read"
        ));
    }
    check_neighbours(tokens)
}

/// Whether a token can put one expression or query inside another.
fn is_link(token: &Token) -> bool {
    match token {
        Token::Word(word) => !matches!(
            word.value.to_ascii_uppercase().as_str(),
            "NULL" | "TRUE" | "FALSE" | "DEFAULT"
        ),
        Token::Whitespace(_)
        | Token::Comma
        | Token::Period
        | Token::SemiColon
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::EOF => false,
        _ => true,
    }
}

fn check_token(token: &Token, text: &str, dialect: Dialect) -> Result<(), String> {
    let refused = match token {
        Token::Whitespace(Whitespace::MultiLineComment(comment)) => {
            comment.contains("/*").then_some("a comment inside a comment")
        }
        Token::DollarQuotedString(_) => (!matches!(dialect, Dialect::Postgres | Dialect::Snowflake))
            .then_some("text between dollar signs, which this database reads otherwise"),
        Token::Word(word) => {
            let bracketed = dialect == Dialect::Generic && word.quote_style == Some('[');
            (bracketed || (word.quote_style.is_some() && word.value.contains('\\')))
                .then_some("a quoted name that databases read differently")
        }
        Token::SingleQuotedByteStringLiteral(value)
        | Token::DoubleQuotedByteStringLiteral(value)
        | Token::SingleQuotedRawStringLiteral(value)
        | Token::DoubleQuotedRawStringLiteral(value)
        | Token::NationalStringLiteral(value)
        | Token::HexStringLiteral(value) => value
            .contains('\\')
            .then_some("a backslash in a string with a prefix"),
        Token::TripleSingleQuotedString(_)
        | Token::TripleDoubleQuotedString(_)
        | Token::TripleSingleQuotedByteStringLiteral(_)
        | Token::TripleDoubleQuotedByteStringLiteral(_)
        | Token::TripleSingleQuotedRawStringLiteral(_)
        | Token::TripleDoubleQuotedRawStringLiteral(_) => text
            .contains('\\')
            .then_some("a backslash beside a string in three quotes"),
        Token::QuoteDelimitedStringLiteral(_)
        | Token::NationalQuoteDelimitedStringLiteral(_)
        | Token::CopyData { .. }
        | Token::Backslash
        | Token::Char(_) => Some("a sign that cannot be read with certainty"),
        _ => None,
    };
    match refused {
        Some(what) => Err(format!("the SQL text holds {what}")),
        None => Ok(()),
    }
}

/// `1x` is one word to some databases and two to others.
fn check_neighbours(tokens: &[TokenWithSpan]) -> Result<(), String> {
    let mixed = tokens.windows(2).any(|pair| {
        matches!(
            pair,
            [
                TokenWithSpan {
                    token: Token::Number(..),
                    ..
                },
                TokenWithSpan {
                    token: Token::Word(_),
                    ..
                }
            ]
        )
    });
    if mixed {
        return Err("the SQL text holds a number with letters right behind it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_does_not_end_is_refused_in_every_dialect() {
        for dialect in Dialect::ALL {
            for text in ["PRAGMA p$a$a/*!ema = 0", "SELECT 1 /* a */ /*", "SELECT 1 /*/"] {
                assert!(check_text(text, dialect).is_err(), "{text}");
            }
        }
        assert!(check_text("SELECT /* a */ 1 /**/", Dialect::Sqlite).is_ok());
    }
}
