//! The operators' API of a control plane on loopback.

use std::net::SocketAddr;

use serde_json::Value;

use crate::connection::Connection;
use crate::error::{During as _, Result, unexpected};

/// An operator.
#[derive(Debug, Clone)]
pub struct Rest {
    /// Where the control plane serves operators.
    pub address: SocketAddr,
    /// The operator's token.
    pub token: String,
}

impl Rest {
    /// Sends a request that must succeed; a JSON body is one that begins with `{`.
    ///
    /// # Errors
    /// When it does not.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let answer = self.answer(method, path, body).await?;
        serde_json::from_slice(&answer).map_err(|error| unexpected(format!("{method} {path}: {error}")))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub async fn text(&self, path: &str) -> Result<String> {
        let answer = self.answer("GET", path, "").await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn answer(&self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        let mut connection = Connection::open(self.address)
            .await
            .during("connect to the control plane")?;
        let kind = if body.starts_with('{') {
            "application/json"
        } else {
            "application/yaml"
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: {kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        let answer = connection
            .exchange(request.as_bytes())
            .await
            .during("call the control plane")?;
        if !(200..300).contains(&answer.status) {
            return Err(unexpected(format!(
                "{method} {path}: {} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            )));
        }
        Ok(answer.body.to_vec())
    }

    /// A join token for `uses` sidecars.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub async fn join_token(&self, uses: u32) -> Result<String> {
        let body = format!(r#"{{"agents":["*"],"upstreams":["*"],"ttl":"1h","uses":{uses}}}"#);
        let made = self.send("POST", "/sidecars/tokens", &body).await?;
        let token = made.get("token").and_then(Value::as_str);
        token
            .map(str::to_owned)
            .ok_or_else(|| unexpected("the control plane made no token"))
    }
}
