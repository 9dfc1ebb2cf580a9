//! The arguments of a program that its row describes: options and their values, files, patterns.

use super::reader::{Reader, shown};
use super::table::{Effect, Operands, Row};
use super::word::{OPEN, Word};
use crate::classify::Risk;

impl Reader {
    /// Reads the arguments of a program by its row.
    pub(super) fn arguments(&mut self, program: &str, row: &Row, arguments: &[Word]) {
        let mut operands = 0_usize;
        let mut is_pattern_given = false;
        let mut only_operands = false;
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if !only_operands {
                self.hidden_option(program, row, word);
                if word.certain() == Some("--") {
                    only_operands = true;
                    continue;
                }
                if word.text.starts_with('-') && word.text.len() > 1 {
                    let taken = self.option(program, row, word, &mut is_pattern_given);
                    if let Some(effect) = taken {
                        self.value(effect, words.next());
                    }
                    continue;
                }
            }
            operands += 1;
            if word.splits && row.most.is_some() {
                self.uncertain(|| format!("how many arguments {program} gets is not certain"));
            }
            if let Some(start) = row.unless
                && !word.text.starts_with(start)
            {
                self.add(Risk::Execution, || {
                    format!("{program} with {}", shown(&word.text))
                });
            }
            match row.operands {
                Operands::Text => (),
                Operands::Pattern if operands == 1 && !is_pattern_given => (),
                Operands::Pattern | Operands::Files => self.path(word),
            }
        }
        if let Some((most, risk)) = row.most
            && operands > most
        {
            self.add(risk, || format!("{program} with {operands} arguments"));
        }
    }

    fn hidden_option(&mut self, program: &str, row: &Row, word: &Word) {
        if word.may_hide_option() || (word.may_match_option() && row.is_sensitive()) {
            self.paths.lose();
            self.uncertain(|| format!("an argument of {program} may be any option"));
        }
    }

    /// Reads one option; returns what the next argument is, when the option takes it.
    fn option(
        &mut self,
        program: &str,
        row: &Row,
        word: &Word,
        is_pattern_given: &mut bool,
    ) -> Option<Effect> {
        let text = word.text.as_str();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let mut effects: Vec<Effect> = Vec::new();
        let mut takes_next = value.is_none();
        if name.starts_with("--") {
            effects.extend(row.long(name));
        } else {
            effects.extend(row.long(name).filter(|_| name.len() > 2));
            for (at, c) in text.char_indices().skip(1) {
                let before = effects.len();
                effects.extend(row.short(c));
                let is_last = at + c.len_utf8() == text.len();
                takes_next = is_last && effects.len() > before;
            }
        }
        *is_pattern_given |= effects.contains(&Effect::Pattern);
        if value
            .or(Some(text))
            .is_some_and(|value| value.contains(['/', OPEN]))
        {
            self.glued(value);
        }
        let mut next = None;
        for effect in effects {
            match effect {
                Effect::Risk(risk) => self.add(risk, || format!("{program} {}", shown(name))),
                Effect::Write => self.add(Risk::LocalWrite, || format!("{program} {}", shown(name))),
                _ => (),
            }
            match (effect, value) {
                (Effect::Write | Effect::File, Some(value)) => self.path(&Word::literal(value)),
                (Effect::Write | Effect::File | Effect::Value, None) if takes_next => next = Some(effect),
                (Effect::Write | Effect::File, None) => self.paths.lose(),
                _ => (),
            }
        }
        next
    }

    /// A value that is part of an option's word.
    fn glued(&mut self, value: Option<&str>) {
        match value {
            Some(value) if !value.contains(OPEN) => self.paths.add(value),
            _ => self.paths.lose(),
        }
    }

    fn value(&mut self, effect: Effect, word: Option<&Word>) {
        if let (Effect::Write | Effect::File, Some(word)) = (effect, word) {
            self.path(word);
        }
    }
}
