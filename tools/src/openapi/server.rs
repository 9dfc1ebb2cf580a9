//! Where the operations of a document are called.

use super::document::{Source, Unusable};
use super::text::{cut, text_of};
use crate::json::{Kind, Node};

/// A scheme, host and port, with the path before all paths of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// `https://example.com:8443`, in lower case, without a port that is the scheme's own.
    pub origin: String,
    /// `/api/v1`, without a slash at its end; empty for none.
    pub path: String,
}

impl Base {
    /// Reads an absolute URL; query and fragment, credentials and other schemes are refused.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if authority.is_empty() || !authority.bytes().all(is_host) {
            return None;
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
        Some(Self {
            origin: format!("{scheme}://{authority}"),
            path: base_path(path)?,
        })
    }
}

/// A path to put before others: absolute, plain, without `.` and `..`.
fn base_path(path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte);
    let is_step = |segment: &str| segment == "." || segment == "..";
    let lower = path.to_ascii_lowercase();
    if !path.bytes().all(is_plain)
        || path.split('/').any(is_step)
        || lower.contains("%2e")
        || lower.contains("%2f")
    {
        return None;
    }
    Some(path.to_owned())
}

/// What decides where calls go.
pub(super) struct Servers {
    /// Where the document comes from.
    pub(super) document: Option<Base>,
    /// What the operator configured.
    pub(super) backend: Option<Base>,
    /// Where operations without servers of their own are called.
    pub(super) usual: Result<Base, Unusable>,
}

impl Servers {
    pub(super) fn new(source: &Source<'_>, document: Option<Base>, backend: Option<Base>) -> Self {
        let mut servers = Self {
            document,
            backend,
            usual: Err(Unusable::Server(String::new())),
        };
        servers.usual = servers.usual(source);
        servers
    }

    fn usual(&self, source: &Source<'_>) -> Result<Base, Unusable> {
        if let Some(backend) = &self.backend {
            return Ok(backend.clone());
        }
        if source.is_swagger() {
            return self.of_swagger(source.root);
        }
        self.chosen(source.root).unwrap_or_else(|| self.within("/", "/"))
    }

    /// Where an operation is called whose own or whose path's `servers` may say otherwise.
    pub(super) fn of(&self, path_item: Node<'_>, operation: Node<'_>) -> Result<Base, Unusable> {
        let own = self.chosen(operation).or_else(|| self.chosen(path_item));
        own.unwrap_or_else(|| self.usual.clone())
    }

    /// The first of an object's servers that may be used; none when it names none.
    fn chosen(&self, holder: Node<'_>) -> Option<Result<Base, Unusable>> {
        let servers = holder.get("servers").filter(|servers| !servers.is_empty())?;
        let mut first_problem = None;
        for server in servers.elements() {
            let url = with_variables(server);
            match self.allowed(&url) {
                Ok(base) => return Some(Ok(base)),
                Err(problem) => first_problem = first_problem.or(Some(problem)),
            }
        }
        first_problem.map(Err)
    }

    fn of_swagger(&self, root: Node<'_>) -> Result<Base, Unusable> {
        let path = text_of(root, "basePath").unwrap_or_default();
        let Some(host) = text_of(root, "host") else {
            return self.within(&format!("/{}", path.trim_start_matches('/')), &path);
        };
        let schemes: Vec<String> = root
            .get("schemes")
            .into_iter()
            .flat_map(Node::elements)
            .filter_map(|scheme| Some(scheme.as_str()?.into_owned()))
            .collect();
        let document = self.document.as_ref();
        let own = document
            .and_then(|base| base.origin.split_once("://"))
            .map(|(scheme, _)| scheme);
        let scheme = schemes
            .iter()
            .map(String::as_str)
            .find(|scheme| Some(*scheme) == own)
            .or(schemes.first().map(String::as_str))
            .or(own)
            .unwrap_or("https");
        self.allowed(&format!("{scheme}://{host}/{}", path.trim_start_matches('/')))
    }

    /// A server's URL, where it may be called: within the document's own origin, or exactly as configured.
    fn allowed(&self, url: &str) -> Result<Base, Unusable> {
        let refused = || Unusable::Server(cut(url, 200));
        if !url.contains("://") && !url.starts_with("//") {
            return self.within(url, url);
        }
        let base = Base::parse(url).ok_or_else(refused)?;
        let is_own = self
            .document
            .as_ref()
            .is_some_and(|own| own.origin == base.origin);
        if is_own || self.backend.as_ref() == Some(&base) {
            Ok(base)
        } else {
            Err(refused())
        }
    }

    /// A relative URL, against that of the document.
    fn within(&self, relative: &str, shown: &str) -> Result<Base, Unusable> {
        let refused = || Unusable::Server(cut(shown, 200));
        // Without the operator's word it is where the document is; else the operator's word stands for it.
        if let Some(backend) = &self.backend {
            return Ok(backend.clone());
        }
        let document = self.document.as_ref().ok_or_else(refused)?;
        let path = if relative.starts_with('/') {
            relative.to_owned()
        } else {
            let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{}", relative.trim_start_matches("./"))
        };
        Ok(Base {
            origin: document.origin.clone(),
            path: base_path(&path).ok_or_else(refused)?,
        })
    }
}

/// A server's URL with the default of each variable.
fn with_variables(server: Node<'_>) -> String {
    let mut url = text_of(server, "url").unwrap_or_default();
    let Some(variables) = server.get("variables").filter(|node| node.kind() == Kind::Object) else {
        return url;
    };
    for (name, variable) in variables.members().take(64) {
        let value = text_of(variable, "default").or_else(|| {
            let first = variable.get("enum")?.elements().next()?;
            Some(first.as_str()?.into_owned())
        });
        if url.len() < 4096 {
            url = url.replace(&format!("{{{name}}}"), &value.unwrap_or_default());
        }
    }
    url
}
