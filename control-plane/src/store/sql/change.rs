//! One change of desired state: the revision's lock, the rows of `changes`, the new head.

use bytes::Bytes;
use proto::v1;

use super::{
    tx::Tx,
    value::{Arg, Row, args, from_json, to_json},
};
use crate::store::{
    desired::{Change, ChangedResource},
    error::StoreResult,
    types::{Micros, Revision, Topic},
};

/// A change under way. It holds the lock of `revision` until its transaction ends.
pub(super) struct Changing {
    before: Revision,
    /// The revision that this change makes, if it changes anything.
    pub(super) revision: Revision,
    /// The database's clock after the lock was taken.
    pub(super) now: Micros,
    by: String,
    /// Rows of `changes` to be written.
    notes: Vec<Vec<Arg>>,
}

/// Whom a resource concerned.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) agents: Vec<String>,
    pub(super) namespaces: Vec<String>,
}

impl Scope {
    pub(super) fn of_namespace(namespace: &str) -> Self {
        Self {
            agents: vec!["*".to_owned()],
            namespaces: vec![namespace.to_owned()],
        }
    }

    pub(super) fn everybody() -> Self {
        Self::of_namespace("*")
    }
}

/// A resource with its scope.
pub(super) fn resource(
    kind: &str,
    name: &str,
    revision: Revision,
    body: Bytes,
    scope: Scope,
) -> v1::Resource {
    v1::Resource {
        r#type: kind.to_owned(),
        name: name.to_owned(),
        revision: Some(revision.into()),
        body,
        agents: scope.agents,
        namespaces: scope.namespaces,
    }
}

impl Changing {
    /// Locks the order of desired state.
    pub(super) async fn begin(tx: &mut Tx, by: &str) -> StoreResult<Self> {
        let before = tx
            .one("SELECT generation, number FROM revision FOR UPDATE", &[])
            .await?
            .revision()?;
        let now = tx.now().await?;
        Ok(Self {
            before,
            revision: Revision::new(before.generation, before.number + 1),
            now,
            by: by.to_owned(),
            notes: Vec::new(),
        })
    }

    /// Notes that a resource is now so, and whom it concerned before.
    pub(super) fn changed(&mut self, resource: &v1::Resource, before: &Scope) -> StoreResult<()> {
        let now = Scope {
            agents: resource.agents.clone(),
            namespaces: resource.namespaces.clone(),
        };
        self.note(
            &resource.r#type,
            &resource.name,
            Some(&resource.body),
            &now,
            before,
        )
    }

    /// Notes that a resource is gone.
    pub(super) fn removed(&mut self, kind: &str, name: &str, before: &Scope) -> StoreResult<()> {
        self.note(kind, name, None, &Scope::default(), before)
    }

    fn note(
        &mut self,
        kind: &str,
        name: &str,
        body: Option<&Bytes>,
        now: &Scope,
        before: &Scope,
    ) -> StoreResult<()> {
        let position = i64::try_from(self.notes.len()).unwrap_or(i64::MAX);
        self.notes.push(
            args![
                self.revision.generation,
                self.revision.number,
                position,
                self.now,
                &self.by,
                kind,
                name,
                body.map(|body| body.to_vec()),
                to_json("agents", &now.agents)?,
                to_json("namespaces", &now.namespaces)?,
                to_json("agents", &before.agents)?,
                to_json("namespaces", &before.namespaces)?,
            ]
            .to_vec(),
        );
        Ok(())
    }

    /// Has anything been noted?
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Moves the head, if anything was noted; answers the head.
    pub(super) async fn finish(self, tx: &mut Tx) -> StoreResult<Revision> {
        if self.is_empty() {
            return Ok(self.before);
        }
        tx.insert_many(
            "INSERT INTO changes (generation, number, position, at, made_by, kind, name, body, agents, namespaces, \
             agents_before, namespaces_before)",
            &self.notes,
            "",
        )
        .await?;
        tx.run("UPDATE revision SET number = $1", &args![self.revision.number])
            .await?;
        tx.wake(Topic::Changes);
        Ok(self.revision)
    }
}

/// Reads the rows of `changes`, ordered, into whole revisions.
pub(super) fn changes(rows: &[Row]) -> StoreResult<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for row in rows {
        let revision = row.revision()?;
        let changed = changed_resource(row, revision)?;
        match changes.last_mut() {
            Some(last) if last.revision == revision => last.resources.push(changed),
            _ => changes.push(Change {
                revision,
                at: row.int("at")?,
                by: row.text("made_by")?,
                resources: vec![changed],
            }),
        }
    }
    Ok(changes)
}

fn changed_resource(row: &Row, revision: Revision) -> StoreResult<ChangedResource> {
    let kind = row.text("kind")?;
    let name = row.text("name")?;
    let scope = Scope {
        agents: row.list("agents")?,
        namespaces: row.list("namespaces")?,
    };
    let body = row.maybe_bytes("body")?;
    Ok(ChangedResource {
        resource: body.map(|body| resource(&kind, &name, revision, body.into(), scope)),
        agents_before: from_json("agents", &row.text("agents_before")?)?,
        namespaces_before: from_json("namespaces", &row.text("namespaces_before")?)?,
        kind,
        name,
    })
}
