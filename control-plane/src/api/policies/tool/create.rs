//! A policy for an agent that has none of its own.

use net::problem::Problem;
use policy::edit;
use tools::id::PolicyName;

use super::Failed;
use super::plan::{Desk, Plan, Step, draft, refused};
use crate::documents::Replacement;
use crate::store::desired::Expected;

/// Names that are tried for a new policy or file before giving up.
const NAMES: usize = 100;

impl Desk<'_> {
    pub(super) fn create(&self) -> Result<Plan, Failed> {
        let agent = &self.question.agent;
        let no_name = || {
            Failed::Refused(Problem::conflict(
                "every name that a new policy could have is taken",
            ))
        };
        let is_free = |name: &PolicyName| !self.rows.iter().any(|row| row.document.name == name.as_str());
        let name = numbered(agent.as_str())
            .filter_map(|name| PolicyName::try_from(name.as_str()).ok())
            .find(is_free)
            .ok_or_else(no_name)?;
        let file = match &self.core.directory {
            Some(directory) => {
                let names = numbered(&edit::file_stem(agent)).map(|stem| format!("{stem}.yaml"));
                let mut free = names.filter(|file| !directory.path().join(file).exists());
                Some(free.next().ok_or_else(no_name)?)
            }
            None => None,
        };
        let request = self.request(&name, None, &self.core.lists);
        let text = edit::new_document(&name, agent, &request).map_err(refused)?;
        let shown = file.clone().unwrap_or_else(|| format!("{name}.yaml"));
        let policies = self.parse(&shown, &text, file.as_deref())?;
        let Some(policy) = policies.first().cloned() else {
            return Err(Failed::Refused(Problem::internal()));
        };
        let set = self.with(policies, &[]);
        let after = self.standard(&set);
        self.says_what_was_asked(after, &set)?;
        let step = match &file {
            Some(file) => Step::File(Replacement {
                file: file.clone(),
                before: None,
                after: Some(text.clone()),
            }),
            None => Step::Put(Box::new(draft(&policy, &text)?), Expected::Absent),
        };
        Ok(Plan {
            step,
            policy: Some(name.as_str().to_owned()),
            rule: Some(0),
            before: self.standard(&self.set),
            after,
            version_before: None,
            text_before: None,
            text_after: Some(text),
            source_file: file,
        })
    }
}

/// A name, and the same with numbers.
fn numbered(name: &str) -> impl Iterator<Item = String> + use<> {
    let name = name.to_owned();
    (1..=NAMES).map(move |number| match number {
        1 => name.clone(),
        number => format!("{name}-{number}"),
    })
}
