//! An operator's client of the control plane's REST API.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

/// Speaks to one control plane with one token.
#[derive(Clone, Debug)]
pub struct Operator {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Operator {
    /// A client that trusts `ca_pem` where the URL is https.
    #[must_use]
    pub fn new(url: &str, token: &str, ca_file: Option<&std::path::Path>) -> Self {
        Self {
            http: client(ca_file),
            url: url.to_owned(),
            token: token.to_owned(),
        }
    }

    /// The same control plane with another credential.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self.clone()
        }
    }

    /// A request with the credential.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.token)
    }

    /// A request without any credential.
    pub fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Status and body, whatever they are; a body that is not JSON is a string; nobody there: status 0.
    pub async fn try_send(&self, request: RequestBuilder) -> (u16, Value) {
        match request.send().await {
            Ok(response) => {
                let status = response.status().as_u16();
                let text = response.text().await.unwrap_or_default();
                (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
            }
            Err(error) => (0, Value::String(error.to_string())),
        }
    }

    /// A GET that must succeed.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.try_send(self.request(Method::GET, path)).await;
        assert_eq!(status, StatusCode::OK.as_u16(), "GET {path}: {body}");
        body
    }

    /// A POST of JSON that must succeed.
    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.try_send(self.request(Method::POST, path).json(&body)).await;
        assert!((200..300).contains(&status), "POST {path}: {status} {answer}");
        answer
    }

    /// A DELETE that must succeed.
    pub async fn delete(&self, path: &str) -> Value {
        let (status, answer) = self.try_send(self.request(Method::DELETE, path)).await;
        assert!((200..300).contains(&status), "DELETE {path}: {status} {answer}");
        answer
    }

    /// Puts a policy in force; answers its revision.
    pub async fn put_policy(&self, name: &str, yaml: &str) -> String {
        let request = self
            .request(Method::PUT, &format!("/policies/{name}"))
            .header("Content-Type", "application/yaml");
        let (status, answer) = self.try_send(request.body(yaml.to_owned())).await;
        assert!((200..300).contains(&status), "PUT {name}: {status} {answer}");
        answer["revision"].as_str().unwrap().to_owned()
    }

    /// Waits until every connected sidecar has applied a revision.
    pub async fn applied(&self, revision: &str, sidecars: u64) {
        crate::wait::until(&format!("revision {revision} applied by {sidecars}"), || async {
            let rollout = self.get(&format!("/rollouts/{revision}")).await;
            (rollout["complete"] == true && rollout["applied"].as_u64() >= Some(sidecars)).then_some(())
        })
        .await;
    }

    /// The one pending approval of a tool, once it is there.
    pub async fn pending(&self, tool: &str) -> Value {
        crate::wait::until(&format!("an approval of {tool} is pending"), || async {
            self.get(&format!("/approvals?status=pending&tool={tool}"))
                .await
                .get(0)
                .cloned()
        })
        .await
    }

    /// The records that a query gives, newest first, once there are at least `count`.
    pub async fn records(&self, query: &str, count: usize) -> Vec<Value> {
        crate::wait::until(&format!("{count} records of {query}"), || async {
            let records = self.get(&format!("/traces?limit=1000&{query}")).await;
            let records = records.as_array().cloned().unwrap_or_default();
            let ended: Vec<Value> = records
                .into_iter()
                .filter(|record| record["outcome"] != "pending")
                .collect();
            (ended.len() >= count).then_some(ended)
        })
        .await
    }
    /// All ended records that a query gives, page by page.
    pub async fn all_records(&self, query: &str) -> Vec<Value> {
        let mut records = Vec::new();
        let mut path = Some(format!("/traces?limit=500&{query}"));
        while let Some(page) = path {
            let response = self.request(Method::GET, &page).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "GET {page}");
            path = response.headers().get("link").map(|link| {
                let link = link.to_str().unwrap();
                let (target, relation) = link.split_once('>').unwrap();
                assert!(relation.contains("next"), "{link}");
                target.trim_start_matches('<').to_owned()
            });
            let page: Vec<Value> = response.json().await.unwrap();
            records.extend(page.into_iter().filter(|record| record["outcome"] != "pending"));
        }
        records
    }
}

/// An HTTP client of the tests: no proxies, no redirects, TCP_NODELAY.
#[must_use]
pub fn client(ca_file: Option<&std::path::Path>) -> reqwest::Client {
    reqwest::Client::builder()
        .tls_backend_preconfigured(net::tls::client_config(ca_file).unwrap())
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .unwrap()
}
