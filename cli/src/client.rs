//! The control plane's REST API, as the commands use it.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::connection::Target;
use crate::error::CliError;

/// How long a request may take to be answered, connection included.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one control plane.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    target: Target,
}

impl Client {
    pub(crate) fn new(target: Target) -> Result<Self, CliError> {
        let tls = net::tls::client_config(target.ca_cert.as_deref())
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .map_err(|error| CliError::Failed(error.to_string()))?;
        Ok(Self { http, target })
    }

    pub(crate) fn url(&self) -> &str {
        &self.target.url
    }

    /// A request to a path of the API, with the operator's credential.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.target.url));
        match &self.target.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends and reads a JSON answer; any status but 2xx is an error with the problem's own words.
    pub(crate) async fn json(&self, request: RequestBuilder) -> Result<Value, CliError> {
        let response = self.send(request.timeout(TIMEOUT)).await?;
        response.json().await.map_err(|error| self.unreachable(&error))
    }

    /// Sends; any status but 2xx is an error with the problem's own words.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, CliError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.problem(response).await)
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, CliError> {
        self.json(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, CliError> {
        self.json(self.request(Method::DELETE, path)).await
    }

    async fn problem(&self, response: Response) -> CliError {
        let status = response.status();
        let body: Value = response.json().await.unwrap_or_default();
        let said = body
            .get("detail")
            .or_else(|| body.get("error"))
            .and_then(Value::as_str);
        let mut detail = said
            .unwrap_or_else(|| status.canonical_reason().unwrap_or("error"))
            .to_owned();
        for problem in body
            .get("problems")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            detail.push('\n');
            detail.push_str(&problem_line(&text_of(problem, "file"), problem));
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => CliError::Refused {
                url: self.target.url.clone(),
                detail,
            },
            StatusCode::NOT_FOUND if detail.starts_with("there is no path ") => CliError::Problem {
                status: status.as_u16(),
                detail: format!(
                    "{detail} at {}; give the operators' address of a control plane (`listen.operator`) by --url or TOOLGATE_CONTROL_URL",
                    self.target.url
                ),
            },
            status => CliError::Problem {
                status: status.as_u16(),
                detail,
            },
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> CliError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        CliError::Unreachable {
            what: "the control plane",
            url: self.target.url.clone(),
            cause: cause.to_string(),
        }
    }
}

/// One problem of a document, as `file:line:column message; hint`.
pub(crate) fn problem_line(file: &str, problem: &Value) -> String {
    let number = |name| problem.get(name).and_then(Value::as_u64).unwrap_or_default();
    let place = match number("line") {
        0 => file.to_owned(),
        line => format!("{file}:{line}:{}", number("column")),
    };
    let (message, hint) = (text_of(problem, "message"), text_of(problem, "hint"));
    if hint.is_empty() {
        format!("{place} {message}")
    } else {
        format!("{place} {message}; {hint}")
    }
}

fn text_of(problem: &Value, name: &str) -> String {
    problem
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A path segment, percent-encoded.
pub(crate) fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_problem_of_a_whole_file_names_no_line() {
        let problem = serde_json::json!({"line": 0, "column": 0, "message": "there is no policy"});
        assert_eq!(
            super::problem_line("a.yaml", &problem),
            "a.yaml there is no policy"
        );
        let problem = serde_json::json!({"line": 2, "column": 3, "message": "bad", "hint": "mend it"});
        assert_eq!(super::problem_line("a.yaml", &problem), "a.yaml:2:3 bad; mend it");
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(super::segment("a/../b?c d"), "a%2F..%2Fb%3Fc%20d");
    }
}
