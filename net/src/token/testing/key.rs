//! Keys that sign tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use serde_json::{Value, json};

/// A throw-away RSA key of 2048 bits, in PKCS #8 form: ring makes none.
const RSA: &[u8] = include_bytes!("rsa.pk8");

/// A key pair of an issuer.
#[derive(Debug)]
pub struct SigningKey {
    id: String,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// The RSA key of all tests, under this id.
    ///
    /// # Panics
    /// When ring refuses it.
    pub fn rsa(id: &str) -> Self {
        let pair = Pair::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap());
        Self {
            id: id.to_owned(),
            pair,
        }
    }

    /// A new key on P-256.
    ///
    /// # Panics
    /// Without randomness.
    pub fn p256(id: &str) -> Self {
        Self::ecdsa(id, &signature::ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")
    }

    /// A new key on P-384.
    ///
    /// # Panics
    /// Without randomness.
    pub fn p384(id: &str) -> Self {
        Self::ecdsa(id, &signature::ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")
    }

    fn ecdsa(id: &str, algorithm: &'static signature::EcdsaSigningAlgorithm, curve: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self {
            id: id.to_owned(),
            pair: Pair::Ecdsa(pair, curve),
        }
    }

    /// A new key on Ed25519.
    ///
    /// # Panics
    /// Without randomness.
    pub fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Pair::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap());
        Self {
            id: id.to_owned(),
            pair,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The algorithm that [`SigningKey::token`] uses.
    pub fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::Ecdsa(_, "P-384") => "ES384",
            Pair::Ecdsa(..) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// The public half, as a key set holds it.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": encoded(&public.n), "e": encoded(&public.e)})
            }
            Pair::Ecdsa(pair, curve) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "x": encoded(x), "y": encoded(y)})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref())})
            }
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The public half as bytes, such as an attacker can know.
    pub fn public_bytes(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => pair.public().as_ref().to_vec(),
            Pair::Ecdsa(pair, _) => pair.public_key().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.token_by(self.algorithm(), claims)
    }

    /// A token with these claims and an algorithm of the key's kind.
    pub fn token_by(&self, algorithm: &str, claims: &Value) -> String {
        self.signed(
            &json!({"alg": algorithm, "typ": "JWT", "kid": self.id}),
            &claims.to_string(),
        )
    }

    /// A token with any header, over any text.
    ///
    /// # Panics
    /// When the header's algorithm is none of the key's kind.
    pub fn signed(&self, header: &Value, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            encoded(header.to_string().as_bytes()),
            encoded(claims.as_bytes())
        );
        let signature = self.sign(header["alg"].as_str().unwrap_or_default(), signed.as_bytes());
        format!("{signed}.{}", encoded(&signature))
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let encoding: &dyn signature::RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Pair::Ecdsa(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

/// A token that is signed by nobody.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}.",
        encoded(header.to_string().as_bytes()),
        encoded(claims.to_string().as_bytes())
    )
}

/// A token that is authenticated with HMAC-SHA256 under a secret.
pub fn hmac(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let token = unsigned(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let tag = ring::hmac::sign(&key, token.trim_end_matches('.').as_bytes());
    format!("{token}{}", encoded(tag.as_ref()))
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
