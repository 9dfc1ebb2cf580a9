//! What a rule means for the tools that are known.

use tools::classify::{Classification, Family};
use tools::id::{AgentId, Namespace, UpstreamName};
use tools::program::{DISPATCHER, MAX_WORDS};
use tools::targets::Targets;

use super::{Finding, Lint, Place};
use crate::catalogue::{Catalogue, HasField, KnownTool};
use crate::decide::Call;
use crate::document::{Action, Condition, Field, Path, Selector, TargetKind, Test};
use crate::evaluate::{Truth, condition_truth};
use crate::foresee::{ToolQuery, possible_rule};
use crate::glob::ToolGlob;
use crate::nearest::nearest;

pub(super) fn of_rule(place: Place<'_>, catalogue: &Catalogue, findings: &mut Vec<Finding>) {
    let covered: Vec<&KnownTool> = catalogue
        .tools()
        .iter()
        .filter(|known| place.rule.covers_tool(known.name().as_str()))
        .collect();
    unknown_names(place, catalogue, findings);
    if covered.is_empty() {
        return;
    }
    if let Some(finding) = no_known_call(place, &covered) {
        findings.push(finding);
        return;
    }
    match place.rule.action {
        Action::Deny | Action::HumanApproval => missing_fields(place, &covered, findings),
        Action::Allow => more_than_reads(place, &covered, findings),
    }
    without_extractor(place, &covered, findings);
}

fn names<'k>(tools: &[&'k KnownTool]) -> Vec<&'k str> {
    tools.iter().map(|known| known.name().as_str()).collect()
}

fn counted(count: usize) -> String {
    if count == 1 {
        "1 tool".to_owned()
    } else {
        format!("{count} tools")
    }
}

/// Patterns that cover no known tool, with the nearest name.
fn unknown_names(place: Place<'_>, catalogue: &Catalogue, findings: &mut Vec<Finding>) {
    let all = || catalogue.tools().iter().map(|known| known.name().as_str());
    let globs = place.rule.tools.iter().flatten().chain(&place.rule.except);
    for glob in globs {
        if glob.names_a_kind() || glob.glob().is_any() || all().any(|name| glob.matches(name)) {
            continue;
        }
        if let Some(finding) = too_many_words(place, glob, catalogue) {
            findings.push(finding);
            continue;
        }
        if may_be_dispatched(glob, catalogue) {
            continue;
        }
        let message = format!("the pattern \"{glob}\" covers no known tool");
        let finding = place.finding(Lint::NoSuchTool, message);
        match near(glob, catalogue) {
            Some(near) => findings.push(finding.with_hint(format!("did you mean \"{near}\"?"))),
            // Tools that an agent's host runs itself (`Bash`) are in no catalogue.
            None if glob.literal().is_some_and(|name| !name.contains('.')) => {}
            None => {
                findings
                    .push(finding.with_hint("check the name; a tool that appears later would be covered"));
            }
        }
    }
}

/// Whether it may name commands of a program that are not declared: those are in no catalogue, and their dispatcher is.
fn may_be_dispatched(glob: &ToolGlob, catalogue: &Catalogue) -> bool {
    let upstream = glob.as_str().split_once('.').map(|(upstream, _)| upstream);
    let dispatchers = catalogue
        .tools()
        .iter()
        .filter(|known| known.tool.local_name() == DISPATCHER);
    dispatchers
        .filter_map(|known| known.tool.upstream.as_ref())
        .any(|program| Some(program.as_str()) == upstream)
}

/// A pattern that names more words of a program's command than any name has that is decided about: it covers no call.
///
/// INVARIANT: words hold no dots, and a wildcard that stands for some only makes a name longer.
fn too_many_words(place: Place<'_>, glob: &ToolGlob, catalogue: &Catalogue) -> Option<Finding> {
    let (upstream, local) = glob.as_str().split_once('.')?;
    let is_of_program = |known: &KnownTool| {
        known.tool.upstream.as_ref().map(UpstreamName::as_str) == Some(upstream) && known.tool.is_command()
    };
    let words: Vec<&str> = local.split('.').collect();
    if words.len() <= MAX_WORDS || !catalogue.tools().iter().any(is_of_program) {
        return None;
    }
    let message = format!(
        "the pattern \"{glob}\" covers no call: it names {} words of a command of {upstream}, and calls are decided by {MAX_WORDS} words at most",
        words.len()
    );
    let is_restricting = matches!(place.rule.action, Action::Deny | Action::HumanApproval);
    let is_exception = place.rule.except.contains(glob);
    // What restricts holds by any of the names; what lets through has to do so under each.
    let hint = if is_restricting != is_exception {
        let shorter = words.get(..MAX_WORDS).unwrap_or_default().join(".");
        format!(
            "name at most {MAX_WORDS} words: \"{upstream}.{shorter}\" holds for everything beneath it too"
        )
    } else {
        format!(
            "declare the command with its first {MAX_WORDS} words or fewer and name that: it covers everything beneath"
        )
    };
    Some(place.finding(Lint::NoSuchTool, message).with_hint(hint))
}

/// The nearest known name, or the pattern with the nearest upstream's name.
fn near(glob: &ToolGlob, catalogue: &Catalogue) -> Option<String> {
    let text = glob.as_str();
    let all = || catalogue.tools().iter().map(|known| known.name().as_str());
    if glob.literal().is_some() {
        return nearest(text, all()).map(str::to_owned).or_else(|| {
            // A name without its upstream.
            all()
                .find(|name| name.split_once('.').is_some_and(|(_, local)| local == text))
                .map(str::to_owned)
        });
    }
    let (upstream, local) = text.split_once('.')?;
    if upstream.is_empty() || upstream.contains(['*', '?']) {
        return None;
    }
    let found = nearest(upstream, all().filter_map(|name| Some(name.split_once('.')?.0)))?;
    (found != upstream).then(|| format!("{found}.{local}"))
}

/// A caller for questions that do not depend on one.
struct Anybody {
    namespace: Namespace,
    agent: AgentId,
}

fn anybody(place: Place<'_>) -> Option<Anybody> {
    let agent = crate::sample::text_of(place.policy.agents.first()?);
    let namespace = crate::sample::text_of(place.policy.namespaces.first()?);
    Some(Anybody {
        namespace: namespace.parse().unwrap_or_default(),
        agent: agent.parse().ok()?,
    })
}

fn depends_on_caller(place: Place<'_>) -> bool {
    place
        .rule
        .selectors
        .iter()
        .any(|selector| matches!(selector, Selector::User(_)))
        || place
            .rule
            .condition
            .iter()
            .flat_map(Condition::tests)
            .any(|test| !matches!(test.field, Field::Argument(_)))
}

/// The rule is false for every call of every known tool that it covers.
fn no_known_call(place: Place<'_>, covered: &[&KnownTool]) -> Option<Finding> {
    let caller = anybody(place).filter(|_| !depends_on_caller(place))?;
    let could = |known: &KnownTool, truth: Truth| {
        let query = ToolQuery {
            namespace: &caller.namespace,
            agent: &caller.agent,
            user: None,
            session: None,
            tool: known.name(),
            classification: known.classification(),
            targets: None,
            floors: &[],
        };
        possible_rule(place.rule, &query).includes(truth)
    };
    let restricts = place.rule.action != Action::Allow;
    let is_live = covered
        .iter()
        .any(|known| could(known, Truth::True) || (restricts && could(known, Truth::Undecided)));
    (!is_live).then(|| {
        let message = format!(
            "rule {} can never match: what it selects on is never so for the {} it covers",
            place.index,
            counted(covered.len())
        );
        place
            .finding(Lint::NeverMatches, message)
            .with_hint("`toolgate policy why` and GET /tools show how tools are classified")
            .about(&names(covered))
    })
}

/// Tools without the field, on which a restricting rule is undecided and so takes hold.
fn missing_fields(place: Place<'_>, covered: &[&KnownTool], findings: &mut Vec<Finding>) {
    let Some(condition) = &place.rule.condition else {
        return;
    };
    let tests = condition.tests();
    let paths: Vec<&Path> = tests
        .iter()
        .filter_map(|test| match &test.field {
            Field::Argument(path) => Some(path),
            Field::Agent | Field::User | Field::Session => None,
        })
        .collect();
    if paths.is_empty() || !is_undecided_when_absent(place, condition) {
        return;
    }
    let hit: Vec<&KnownTool> = covered
        .iter()
        .copied()
        .filter(|known| paths.iter().all(|path| known.has_field(path) == HasField::No))
        .collect();
    if hit.is_empty() {
        return;
    }
    let fields = joined(&paths);
    let message = format!(
        "rule {} also hits {} without {fields}: a missing field is undecided, and an undecided {} holds",
        place.index,
        counted(hit.len()),
        place.rule.action.as_str()
    );
    findings.push(
        place
            .finding(Lint::MissingField, message)
            .with_hint(proposal(&tests))
            .about(&names(&hit)),
    );
}

fn joined(paths: &[&Path]) -> String {
    let mut texts: Vec<String> = paths.iter().map(|path| format!("`{}`", path.as_str())).collect();
    texts.dedup();
    texts.join(" and ")
}

/// `condition: {all: [{field: command, operator: exists}, …]}`
fn proposal(tests: &[&Test]) -> String {
    let mut fields: Vec<&str> = tests.iter().map(|test| test.field.as_str()).collect();
    fields.dedup();
    let exists: Vec<String> = fields
        .iter()
        .map(|field| format!("{{field: \"{field}\", operator: exists}}"))
        .collect();
    format!(
        "to leave them out write condition: {{all: [{}, …]}} with the present condition in place of …",
        exists.join(", ")
    )
}

fn is_undecided_when_absent(place: Place<'_>, condition: &Condition) -> bool {
    let (Some(caller), Ok(tool)) = (anybody(place), "tool".parse()) else {
        return false;
    };
    let call = Call {
        namespace: &caller.namespace,
        agent: &caller.agent,
        user: None,
        session: None,
        tool: &tool,
        classification: &Classification::unknown(tool.clone()),
        targets: &Targets::UNKNOWN,
        arguments: None,
        floors: &[],
    };
    condition_truth(condition, &call) == Truth::Undecided
}

/// Tools beyond plain reads that a broad allow rule hands over.
fn more_than_reads(place: Place<'_>, covered: &[&KnownTool], findings: &mut Vec<Finding>) {
    if place.rule.condition.is_some() || !place.rule.selectors.is_empty() {
        return;
    }
    let is_named = |known: &KnownTool| {
        let globs = place.rule.tools.iter().flatten();
        globs
            .into_iter()
            .any(|glob| glob.literal() == Some(known.name().as_str()))
    };
    let handed: Vec<&KnownTool> = covered
        .iter()
        .copied()
        .filter(|known| !known.classification().plain_read && !is_named(known))
        .collect();
    if !handed.is_empty() {
        let message = format!(
            "rule {} allows by pattern {} that are not plain reads",
            place.index,
            counted(handed.len())
        );
        findings.push(
            place
                .finding(Lint::AllowsMore, message)
                .with_hint("name the tools that you mean, or add access: read and risk: [READ]")
                .about(&names(&handed)),
        );
    }
    let generic: Vec<&KnownTool> = covered
        .iter()
        .copied()
        .filter(|known| known.classification().family == Family::Generic && is_named(known))
        .collect();
    if !generic.is_empty() {
        let message = format!(
            "rule {} allows {} that do whatever their argument says",
            place.index,
            counted(generic.len())
        );
        findings.push(
            place
                .finding(Lint::AllowsMore, message)
                .with_hint("use human_approval unless the upstream's own credential is narrow")
                .about(&names(&generic)),
        );
    }
}

/// `resources` and `columns` need an extractor; without one they are always undecided.
fn without_extractor(place: Place<'_>, covered: &[&KnownTool], findings: &mut Vec<Finding>) {
    let key = place.rule.selectors.iter().find_map(|selector| match selector {
        Selector::Targets(TargetKind::Resources | TargetKind::Columns, _) => Some(selector.key()),
        _ => None,
    });
    let Some(key) = key else { return };
    let blind: Vec<&KnownTool> = covered
        .iter()
        .copied()
        .filter(|known| !known.has_extractor)
        .collect();
    if blind.is_empty() {
        return;
    }
    let effect = match place.rule.action {
        Action::Allow => "it never allows them",
        Action::HumanApproval | Action::Deny => "it holds for every call of them",
    };
    let message = format!(
        "rule {} selects on {key}, but {} it covers have no extractor: {effect}",
        place.index,
        counted(blind.len())
    );
    findings.push(
        place
            .finding(Lint::NoExtractor, message)
            .with_hint("give them one: PUT /tools/{tool}/extractor")
            .about(&names(&blind)),
    );
}
