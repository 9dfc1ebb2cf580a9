//! Services whose operations become tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tools::id::UpstreamName;
use tools::openapi::{Base, Selection};

use crate::Secret;
use crate::schema::{Headers, HttpUrl, Keys, section};

section! {
    /// A service that an OpenAPI document (3.0, 3.1, or Swagger 2.0; JSON or YAML) describes. Each operation is a tool.
    OpenApiService as "an OpenAPI service" {
        /// Where its document is read. The last good one is kept for when it cannot be.
        url: Option<String> as Option<HttpUrl>,
        /// The file of its document, instead of `url`.
        file: Option<PathBuf>,
        /// The first part of its tools' names. Without it they have none, and the service itself is called by the host of
        /// `url` or by the name of `file`.
        name: Option<UpstreamName>,
        /// Where calls go. Without it, to the document's `servers` within the origin of `url`.
        backend_url: Option<String> as Option<HttpUrl>,
        /// Headers of every request to the service, its document's included. `${VAR}` is replaced from the environment.
        headers: BTreeMap<String, Secret> as Headers,
        /// The operations that become tools, as a method and a path with `*`, such as `GET *`. Without it, all.
        include: Vec<Selection>,
        /// The longest call.
        timeout: Duration = "30s",
    }
    check fits_together
}

fn fits_together(service: &OpenApiService, keys: &Keys<'_, '_>) {
    match (keys.has("url"), keys.has("file")) {
        (true, false) => {}
        (false, true) if keys.has("backend_url") => {}
        (false, true) => {
            let message = "an OpenAPI service with file needs the key \"backend_url\": a file does not say where to call";
            keys.problem(None, message.to_owned());
        }
        (true, true) => {
            let message = "url and file exclude each other; keep one of them";
            keys.problem(Some("file"), message.to_owned());
        }
        (false, false) => {
            keys.problem(
                None,
                "an OpenAPI service needs the key \"url\" or \"file\"".to_owned(),
            );
        }
    }
    let plain = [("url", &service.url), ("backend_url", &service.backend_url)];
    for (key, url) in plain {
        let url = url.as_deref().unwrap_or_default();
        // The query of a document's URL takes no part in where calls go.
        let base = if key == "url" {
            url.split(['?', '#']).next().unwrap_or_default()
        } else {
            url
        };
        if !url.is_empty() && Base::parse(base).is_none() {
            let message =
                format!("{key}: expected a URL with a plain path, without \"..\" and without query");
            keys.problem(Some(key), message);
        }
    }
}

impl OpenApiService {
    /// How the service is called: by its name, else by where its document is.
    pub fn upstream(&self) -> UpstreamName {
        match (&self.name, &self.url, &self.file) {
            (Some(name), _, _) => name.clone(),
            (None, Some(url), _) => named_by_url(url),
            (None, None, file) => named_by_file(file.as_deref().unwrap_or(Path::new(""))),
        }
    }
}

/// The name of a service without one, by its document's URL: `date-nager-at`.
pub fn named_by_url(url: &str) -> UpstreamName {
    let base = Base::parse(url.split(['?', '#']).next().unwrap_or_default());
    let host = base.as_ref().and_then(|base| base.origin.split_once("://"));
    named(host.map_or("", |(_, host)| host))
}

/// The name of a service without one, by its document's file: `internal-api`.
pub fn named_by_file(file: &Path) -> UpstreamName {
    let stem = file.file_stem().unwrap_or_default();
    named(&stem.to_string_lossy())
}

fn named(place: &str) -> UpstreamName {
    let is_kept = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let plain: String = place
        .chars()
        .take(100)
        .map(|letter| if is_kept(letter) { letter } else { '-' })
        .collect();
    let candidates = [plain.clone(), format!("openapi-{plain}"), "openapi".to_owned()];
    candidates
        .iter()
        .find_map(|name| UpstreamName::try_from(name.as_str()).ok())
        .unwrap_or_else(|| unreachable!("\"openapi\" is a name"))
}
