//! Desired state as the plane makes and signs it, and the other messages of a watch.

use ed25519_dalek::Signer;
use prost::Message as _;
use proto::v1;
use proto::view::{resource_digest, signed_text, view_digest};

use super::signing_key;

/// Of the credential that the plane gives out.
fn scope() -> String {
    proto::view::scope_id("default", &["*".into()], &["*".into()])
}

/// A view of desired state, as the plane makes it.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) resources: Vec<v1::Resource>,
}

pub(crate) fn revision(generation: u64, number: u64) -> v1::Revision {
    v1::Revision { generation, number }
}

pub(crate) fn resource(kind: &str, name: &str, number: u64, body: Vec<u8>) -> v1::Resource {
    v1::Resource {
        r#type: kind.into(),
        name: name.into(),
        revision: Some(revision(1, number)),
        body: body.into(),
        agents: vec!["billing-*".into()],
        namespaces: vec!["*".into()],
    }
}

/// A policy that allows everything to everybody.
pub(crate) fn policy(name: &str, number: u64) -> v1::Resource {
    let text = format!("name: {name}\nagent: \"*\"\nrules:\n  - tools: [\"*\"]\n    action: allow\n");
    let parsed = policy::Policy::parse_all(
        "test.yaml",
        &text,
        &policy::document::Source::Api,
        &policy::document::Lists::none(),
    );
    let parsed = parsed.unwrap_or_else(|problems| panic!("{problems:?}"));
    resource("policy", name, number, parsed[0].to_sent().unwrap())
}

impl State {
    pub(crate) fn of(resources: impl IntoIterator<Item = v1::Resource>) -> Self {
        Self {
            resources: resources.into_iter().collect(),
        }
    }

    fn proof(&self, at: v1::Revision) -> v1::StateProof {
        let mut sorted: Vec<_> = self.resources.iter().collect();
        sorted.sort_by_key(|resource| (&resource.r#type, &resource.name));
        let digests: Vec<_> = sorted.into_iter().map(resource_digest).collect();
        let digest = view_digest(&digests);
        let signature = signing_key().sign(&signed_text(&scope(), at, &digest));
        v1::StateProof {
            digest: digest.to_vec().into(),
            signature: signature.to_bytes().to_vec().into(),
            key_id: "k1".into(),
            scope: scope(),
        }
    }

    pub(crate) fn full(&self, at: v1::Revision) -> v1::WatchResponse {
        let set = v1::ResourceSet {
            resources: self.resources.clone(),
        };
        message(v1::watch_response::Message::Full(v1::Full {
            revision: Some(at),
            compressed: zstd::bulk::compress(&set.encode_to_vec(), 1).unwrap().into(),
            proof: Some(self.proof(at)),
        }))
    }

    /// A delta that adds one resource.
    pub(crate) fn add(
        &mut self,
        added: v1::Resource,
        from: v1::Revision,
        to: v1::Revision,
    ) -> v1::WatchResponse {
        self.resources.push(added.clone());
        message(v1::watch_response::Message::Delta(v1::Delta {
            from: Some(from),
            to: Some(to),
            changed: vec![added],
            removed: vec![],
            proof: Some(self.proof(to)),
        }))
    }
}

pub(crate) fn message(message: v1::watch_response::Message) -> v1::WatchResponse {
    v1::WatchResponse {
        message: Some(message),
    }
}

pub(crate) fn heartbeat(ping: &v1::Ping, at: v1::Revision, stops: v1::StopSet) -> v1::WatchResponse {
    message(v1::watch_response::Message::Heartbeat(v1::Heartbeat {
        lease: Some(v1::Lease {
            nonce: ping.nonce.clone(),
            revision: Some(at),
            database_time: 1_000_000_000,
            read_age_ms: 0,
        }),
        stops: Some(stops),
    }))
}

/// A signed statement that the chain's head is record `seq` of generation 1.
pub(crate) fn checkpoint(seq: u64) -> v1::CheckpointNotice {
    let hash = chain::hash::Hash::from([u8::try_from(seq).unwrap(); 32]);
    let signed = chain::checkpoint::CheckpointSigner::from_seed(&[3; 32])
        .sign(&chain::checkpoint::Checkpoint {
            origin: "plane".into(),
            generation: 1,
            seq,
            hash,
            time: chain::timestamp::Timestamp::from_micros(1),
        })
        .unwrap();
    v1::CheckpointNotice {
        signature: signed.signature_bytes().unwrap().to_vec().into(),
        text: signed.text,
        key_id: "c1".into(),
        at: Some(v1::CheckpointRef {
            generation: 1,
            seq,
            hash: hash.as_bytes().to_vec().into(),
        }),
    }
}
