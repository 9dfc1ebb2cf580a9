//! What must hold of every token that is read: the files that read it, and the property.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

#[path = "../../net/src/token/algorithm.rs"]
mod algorithm;
#[path = "../../net/src/token/claims.rs"]
#[allow(dead_code, reason = "only reading is fuzzed")]
mod claims;
#[path = "../../net/src/token/error.rs"]
#[allow(dead_code, reason = "only reading is fuzzed")]
mod error;
#[path = "../../net/src/token/json.rs"]
mod json;
#[path = "../../net/src/token/jws.rs"]
#[allow(dead_code, reason = "only reading is fuzzed")]
mod jws;

/// Reads the bytes as a token, and as the header and the claims (two lines) of one. What is read has an algorithm of the list and
/// registered claims of the right types, as another reader sees them, and is short.
///
/// # Panics
/// When the property does not hold.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    if let (Some(header), Some(claims)) = (lines.next(), lines.next()) {
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        read(&format!(
            "{}.{}.{}",
            encode(header),
            encode(claims),
            encode(b"signature")
        ));
    }
}

fn read(token: &str) {
    let Ok(jws) = jws::Jws::read(token) else {
        return;
    };
    assert!(token.len() <= jws::MAX_TOKEN_BYTES);
    let part = |index: usize| -> Value {
        let part = token.split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let header = part(0);
    let name = header["alg"].as_str().unwrap();
    assert_eq!(algorithm::Algorithm::parse(name), Some(jws.algorithm));
    assert_eq!(header.get("kid").and_then(Value::as_str), jws.key_id.as_deref());
    assert_eq!(part(1), Value::Object(jws.claims.clone()));
    assert_eq!(
        jws.signed.len() + 1 + token.rsplit('.').next().unwrap().len(),
        token.len()
    );
    let Ok(claims) = claims::Claims::read(&jws.claims) else {
        return;
    };
    assert_eq!(jws.claims["iss"], claims.issuer());
    assert!(jws.claims["exp"].is_number());
    assert!(jws.claims.get("sub").is_none_or(Value::is_string));
    for path in ["sub", "iss", "a.b", "", "."] {
        let _ = claims.text(path);
    }
    let _ = claims.is_for("toolgate");
}
