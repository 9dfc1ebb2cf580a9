//! A sidecar and its link to the control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use policy::glob::Glob;
use tools::id::Namespace;

use crate::schema::{HttpUrl, Keys, Size, choice, section};

section! {
    /// Where a sidecar finds its control plane.
    ControlPlane as "control_plane" {
        /// Its gRPC address, such as `https://toolgate.internal:9091`.
        url: Option<String> as Option<HttpUrl>,
        /// Certificate authority of the control plane in PEM form. Default: the public roots.
        ca_cert: Option<PathBuf>,
        /// File with the join token (`toolgate sidecars tokens create`).
        token_file: Option<PathBuf>,
        /// File with the projected service-account token of this pod (audience `toolgate`), instead of a join token; see
        /// `auth.sidecar_accounts` of the control plane.
        service_account_file: Option<PathBuf>,
    }
    check link_is_sound
}

fn link_is_sound(link: &ControlPlane, keys: &Keys<'_, '_>) {
    if link.token_file.is_some() && link.service_account_file.is_some() {
        let message =
            "control_plane.service_account_file and token_file exclude each other; keep one of them";
        keys.problem(Some("service_account_file"), message.to_owned());
    }
    let is_plain = link.url.as_deref().is_some_and(|url| url.starts_with("http://"));
    if is_plain && link.ca_cert.is_some() {
        keys.problem(
            Some("ca_cert"),
            "control_plane.ca_cert needs a url that starts with https://".to_owned(),
        );
    }
}

section! {
    /// What a sidecar is. Its join token may allow less, never more.
    Sidecar as "sidecar" {
        /// A name for people. Default: the host's name.
        name: Option<String>,
        /// Labels for people and for selecting.
        labels: BTreeMap<String, String>,
        /// Patterns of the agents served here.
        agents: Vec<Glob> = "*",
        /// The namespace. Default: the one of the join token.
        namespace: Option<Namespace>,
    }
}

section! {
    /// How old a sidecar's view may be. A sidecar's own file can only make the fleet's bounds shorter.
    Staleness as "staleness" {
        /// Beyond this age only plain reads run.
        write: Duration = "3m",
        /// Beyond this age nothing runs.
        read: Duration = "15m",
    }
    check reads_outlast_writes
}

fn reads_outlast_writes(staleness: &Staleness, keys: &Keys<'_, '_>) {
    if staleness.read < staleness.write {
        keys.problem(
            Some("read"),
            "staleness.read must not be shorter than staleness.write".to_owned(),
        );
    }
}

section! {
    /// The durable queue of records on a sidecar. When it is full, calls are denied: nothing is overwritten.
    Spool as "spool" {
        /// Its folder. Default: `spool` in `data_dir`.
        dir: Option<PathBuf>,
        /// When a call's intent counts as written.
        sync: Sync = "auto",
        /// The most it may hold; keep it below the volume's size.
        max_bytes: u64 as Size<u64> = "1GiB",
    }
}

choice! {
    /// When a call's intent counts as written.
    Sync {
        /// On the disk before what is not a plain read; in the system's cache before a plain read.
        Auto = "auto",
        /// In the system's cache: survives the death of the process, not of the machine.
        Process = "process",
        /// On the disk before every call.
        Disk = "disk",
    }
}
