//! What the simple commands of a text add up to.

use super::lexer::{Lexer, Refusal, Script};
use super::table::{self, How, Row};
use super::tree::{self, Direction, Redirect, Simple};
use super::word::{OPEN, Word, is_deceptive};
use super::{ShellReading, special, wrap};
use crate::classify::{Risk, RiskSet};
use crate::targets::Extent;

/// How many commands one text may run, wrapped ones included.
const MAX_COMMANDS: usize = 1000;
/// How deeply texts for shells may be inside each other.
const MAX_TEXTS: usize = 8;
/// How many bytes are read, those of texts inside of texts included.
const MAX_BYTES: usize = 4 * super::MAX_TEXT;
const MAX_REASONS: usize = 32;
const MAX_MEMBERS: usize = 1000;

/// A set under construction.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    members: Vec<String>,
    is_unknown: bool,
}

impl Gathered {
    pub(super) fn add(&mut self, member: &str) {
        if self.members.iter().any(|known| known == member) {
            return;
        }
        if self.members.len() >= MAX_MEMBERS {
            self.is_unknown = true;
        } else {
            self.members.push(member.to_owned());
        }
    }

    pub(super) fn lose(&mut self) {
        self.is_unknown = true;
    }

    fn extent(self, is_complete: bool) -> Extent {
        match is_complete && !self.is_unknown {
            true => Extent::Known(self.members),
            false => Extent::Unknown,
        }
    }
}

/// Gathers what a text does.
#[derive(Debug)]
pub(super) struct Reader {
    risks: RiskSet,
    is_complete: bool,
    pub(super) hosts: Gathered,
    pub(super) paths: Gathered,
    pub(super) recipients: Gathered,
    reasons: Vec<String>,
    commands: usize,
    texts: usize,
    bytes: usize,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            risks: RiskSet::EMPTY,
            is_complete: true,
            hosts: Gathered::default(),
            paths: Gathered::default(),
            recipients: Gathered::default(),
            reasons: Vec::new(),
            commands: 0,
            texts: 0,
            bytes: 0,
        }
    }

    pub(super) fn finish(mut self) -> ShellReading {
        if self.risks.is_empty() {
            self.add(Risk::Execution, || "nothing to run".to_owned());
            self.is_complete = false;
        }
        ShellReading {
            risks: self.risks,
            complete: self.is_complete,
            capability: Some(super::capability(self.risks)),
            hosts: self.hosts.extent(self.is_complete),
            paths: self.paths.extent(self.is_complete),
            recipients: self.recipients.extent(self.is_complete),
            reasons: self.reasons,
        }
    }

    pub(super) fn add(&mut self, risk: Risk, reason: impl FnOnce() -> String) {
        self.add_all(RiskSet::of(risk), reason);
    }

    pub(super) fn add_all(&mut self, risks: RiskSet, reason: impl FnOnce() -> String) {
        if risks.is_subset_of(self.risks) && self.reasons.len() > MAX_REASONS / 2 {
            return;
        }
        self.risks = self.risks.union(risks);
        if self.reasons.len() < MAX_REASONS {
            let reason = reason();
            if !self.reasons.contains(&reason) {
                self.reasons.push(reason);
            }
        }
    }

    /// Something cannot be read: it may run anything.
    pub(super) fn uncertain(&mut self, reason: impl FnOnce() -> String) {
        self.is_complete = false;
        self.add(Risk::Execution, reason);
    }

    /// Reads a text as a shell does.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes += text.len();
        if self.texts >= MAX_TEXTS || self.bytes > MAX_BYTES {
            return self.uncertain(|| "texts for shells are nested too deeply".to_owned());
        }
        self.texts += 1;
        let mut lexer = Lexer::new(text, 0);
        match lexer.script(false) {
            Ok(script) => self.script(&script),
            Err(refusal) => self.refuse(refusal),
        }
        if lexer.deceives {
            self.uncertain(|| "control, invisible or reordering characters".to_owned());
        }
        self.texts -= 1;
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.uncertain(|| refusal.to_string());
    }

    fn script(&mut self, script: &Script) {
        for word in &script.words {
            if word.runs {
                self.add(Risk::Execution, || {
                    "a substitution, or what shells read differently".to_owned()
                });
            }
            for inner in &word.inner {
                self.script(inner);
            }
        }
        match tree::parse(script) {
            Ok(tree) => {
                if tree.is_compound {
                    self.add(Risk::Execution, || "several commands".to_owned());
                }
                for simple in &tree.commands {
                    self.simple(simple);
                }
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn simple(&mut self, simple: &Simple<'_>) {
        if simple.assigns {
            self.add(Risk::Execution, || "a variable is set".to_owned());
        }
        for redirect in &simple.redirects {
            self.redirect(redirect);
        }
        if simple.words.is_empty() {
            return;
        }
        let words: Vec<Word> = simple.words.iter().map(|word| (*word).clone()).collect();
        let mut input = None;
        for redirect in simple
            .redirects
            .iter()
            .filter(|redirect| redirect.direction == Direction::Text)
        {
            input = Some(redirect.target);
        }
        self.command(&words, input);
    }

    fn redirect(&mut self, redirect: &Redirect<'_>) {
        let target = redirect.target;
        let Some(name) = target.certain() else {
            if redirect.direction == Direction::Text {
                return self.add(Risk::Execution, || "a redirection".to_owned());
            }
            self.paths.lose();
            self.hosts.lose();
            return self.uncertain(|| "a redirection to what cannot be read".to_owned());
        };
        let is_descriptor =
            name == "-" || (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()));
        match redirect.direction {
            Direction::Duplicate if is_descriptor && name.len() <= 3 => return,
            Direction::In | Direction::Out if name == "/dev/null" => return,
            Direction::Text => return self.add(Risk::Execution, || "a redirection".to_owned()),
            Direction::In => self.add(Risk::Execution, || format!("reads {}", shown(name))),
            Direction::Out | Direction::Both | Direction::Duplicate => {
                self.add_all([Risk::Execution, Risk::LocalWrite].into_iter().collect(), || {
                    format!("writes {}", shown(name))
                });
            }
        }
        let device = name
            .strip_prefix("/dev/tcp/")
            .or_else(|| name.strip_prefix("/dev/udp/"));
        match device.map(|rest| rest.split('/').next().unwrap_or_default()) {
            Some(host) => {
                self.add(Risk::ExternalWrite, || format!("connects to {}", shown(host)));
                self.host(host);
            }
            None => self.paths.add(name),
        }
    }

    /// Takes a host's name that was read with certainty.
    pub(super) fn host(&mut self, host: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(is_plain) {
            return self.hosts.lose();
        }
        self.hosts
            .add(host.trim_end_matches('.').to_ascii_lowercase().as_str());
    }

    /// Takes an argument that names a file.
    pub(super) fn path(&mut self, word: &Word) {
        match word.certain() {
            Some("-" | "") => (),
            Some(path) => self.paths.add(path),
            None => self.paths.lose(),
        }
    }

    /// Reads one command: a program and its arguments.
    pub(super) fn command(&mut self, words: &[Word], input: Option<&Word>) {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return self.uncertain(|| format!("more than {MAX_COMMANDS} commands"));
        }
        let Some((name, arguments)) = words.split_first() else {
            return;
        };
        let Some(named) = name.certain() else {
            return self.uncertain(|| "the name of a command is not certain".to_owned());
        };
        if name.runs {
            self.uncertain(|| "the name of a command is not plain".to_owned());
        }
        let Some(program) = program(named) else {
            return self.stranger(named, arguments, input);
        };
        match table::row(program) {
            Some(row) => self.known(program, row, arguments, input),
            None => self.stranger(named, arguments, input),
        }
    }

    /// A program that is not known, or not where it should be: never milder than what its last name says.
    fn stranger(&mut self, named: &str, arguments: &[Word], input: Option<&Word>) {
        self.uncertain(|| format!("{} is not a known program", shown(named)));
        let last: String = named
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| !is_deceptive(*c))
            .map(|c| c.to_ascii_lowercase())
            .collect();
        if last == named {
            return;
        }
        if let Some(row) = table::row(&last).filter(|_| !last.contains(' ')) {
            self.known(&last, row, arguments, input);
        }
    }

    fn known(&mut self, program: &str, row: &Row, arguments: &[Word], input: Option<&Word>) {
        let risks = row.risks;
        if !risks.is_empty() {
            self.add_all(risks, || format!("{program} is {}", listed(risks)));
        }
        match row.how {
            How::Row => self.arguments(program, row, arguments),
            How::Wrap => wrap::wrapper(self, program, row, arguments, input),
            How::Special => special::read(self, program, row, arguments, input),
        }
    }
}

/// The name of a program in a system directory, or without a directory.
fn program(named: &str) -> Option<&str> {
    let name = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"]
        .iter()
        .find_map(|directory| named.strip_prefix(directory))
        .unwrap_or(named);
    (!name.is_empty() && !name.contains(['/', ' '])).then_some(name)
}

/// Text for a reason: short, and without what could deceive its reader.
pub(super) fn shown(text: &str) -> String {
    let shown: String = text
        .chars()
        .take(40)
        .map(|c| match c {
            OPEN => '…',
            c if is_deceptive(c) || c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect();
    format!("{shown:?}")
}

fn listed(risks: RiskSet) -> String {
    risks.iter().map(Risk::name).collect::<Vec<_>>().join(", ")
}
