//! Protocol errors: JSON-RPC errors with the HTTP status that the specification gives them.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::envelope::RequestId;

/// The code of a denial; it is in the range that JSON-RPC leaves to servers.
pub const DENIED: i32 = -32010;

/// A JSON-RPC error on its way to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    /// HTTP status.
    pub status: StatusCode,
    /// JSON-RPC code.
    pub code: i32,
    /// What is wrong and what to do.
    pub message: String,
    /// Structured detail.
    pub data: Option<serde_json::Value>,
}

impl ProtocolError {
    fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The body is no JSON.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32700, message)
    }

    /// The body is no message that can be served.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32600, message)
    }

    /// The message is larger than this endpoint takes.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            -32600,
            format!("the message is larger than limits.message_bytes ({limit} bytes)"),
        )
    }

    /// The parameters do not fit the method; the request itself was well formed.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, -32602, message)
    }

    /// The parameters lack what every modern request must have.
    pub fn malformed_params(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32602, message)
    }

    /// The method is not served. `status` is 404 for modern clients and 200 for legacy ones.
    pub fn method_not_found(status: StatusCode, method: &str) -> Self {
        Self::new(status, -32601, format!("method not found: {method}"))
    }

    /// Nothing here has the resource.
    pub fn unknown_resource(is_modern: bool) -> Self {
        let code = if is_modern { -32602 } else { -32002 };
        Self::new(StatusCode::OK, code, "Resource not found")
    }

    /// The gate let the request not pass, or not to its end.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, DENIED, message)
    }

    /// The client took it back.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, -32800, message)
    }

    /// There is no answer, for no fault of the request.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, -32603, message)
    }

    /// A header does not say what the body says.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            -32020,
            format!("Header mismatch: {}", message.into()),
        )
    }

    /// The revision asked for is not spoken here; `supported` are those that can be asked for in the same way.
    pub fn unsupported_version(requested: &str, supported: &[&str]) -> Self {
        let mut error = Self::new(StatusCode::BAD_REQUEST, -32022, "Unsupported protocol version");
        error.data = Some(serde_json::json!({"supported": supported, "requested": requested}));
        error
    }

    /// The session is not known to this caller: it has to initialize again.
    pub fn unknown_session() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            -32600,
            "unknown session; send initialize to begin a new one",
        )
    }

    /// The caller is not served.
    pub fn refused(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, -32600, message)
    }

    /// With structured detail.
    #[must_use]
    pub fn with_data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The message's JSON.
    pub fn body(&self, id: Option<&RequestId>) -> Vec<u8> {
        #[derive(Serialize)]
        struct ErrorObject<'a> {
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a serde_json::Value>,
        }
        let error = ErrorObject {
            code: self.code,
            message: &self.message,
            data: self.data.as_ref(),
        };
        let error = serde_json::to_vec(&error)
            .unwrap_or_else(|_| br#"{"code":-32603,"message":"internal error"}"#.to_vec());
        super::answer::error_message(id, &error)
    }

    /// The HTTP response.
    pub fn response(&self, id: Option<&RequestId>) -> Response {
        let mut response = Response::new(Body::from(self.body(id)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
