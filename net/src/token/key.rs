//! One public key of an issuer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value};

use super::algorithm::Algorithm;

/// RSA moduli that are accepted, in bytes: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// Public exponents are short.
const MAX_EXPONENT_BYTES: usize = 8;

/// A public key that signs tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) id: Option<String>,
    /// The one algorithm that the issuer uses it with, where it says so.
    algorithm: Option<Algorithm>,
    material: Material,
    /// Names the key whatever its id: what was verified with it counts while it is among the issuer's keys.
    pub(super) digest: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Key {
    /// Reads a JWK. `None`: it is of a kind that is not used here, such as a secret, or is no sound key.
    pub(super) fn read(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if !is_for_signatures(jwk) {
            return None;
        }
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::parse(name.as_str()?)?),
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => rsa(&bytes(text("n")?)?, &bytes(text("e")?)?)?,
            ("EC", Some("P-256")) => Material::P256(point(text("x")?, text("y")?, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(text("x")?, text("y")?, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(text("x")?).filter(|key| key.len() == 32)?),
            _ => return None,
        };
        if algorithm.is_some_and(|algorithm| material.verification(algorithm).is_none()) {
            return None;
        }
        Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm,
            digest: material.digest(algorithm),
            material,
        })
    }

    /// Whether tokens with this algorithm can be of this key.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|only| only == algorithm) && self.material.verification(algorithm).is_some()
    }

    /// Whether the signature is one of this key, made with this algorithm.
    pub(super) fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        match (&self.material, self.material.verification(algorithm)) {
            (Material::Rsa { modulus, exponent }, Some(Verification::Rsa(parameters))) => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, signed, signature).is_ok()
            }
            (
                Material::P256(key) | Material::P384(key) | Material::Ed25519(key),
                Some(Verification::Curve(parameters)),
            ) => UnparsedPublicKey::new(parameters, key)
                .verify(signed, signature)
                .is_ok(),
            _ => false,
        }
    }
}

enum Verification {
    Rsa(&'static signature::RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

impl Material {
    /// How signatures of this kind of key are verified; none with an algorithm of another kind.
    fn verification(&self, algorithm: Algorithm) -> Option<Verification> {
        use Verification::{Curve, Rsa};
        Some(match (self, algorithm) {
            (Self::Rsa { .. }, Algorithm::Rs256) => Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            (Self::Rsa { .. }, Algorithm::Rs384) => Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            (Self::Rsa { .. }, Algorithm::Rs512) => Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            (Self::Rsa { .. }, Algorithm::Ps256) => Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            (Self::Rsa { .. }, Algorithm::Ps384) => Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            (Self::Rsa { .. }, Algorithm::Ps512) => Rsa(&signature::RSA_PSS_2048_8192_SHA512),
            (Self::P256(_), Algorithm::Es256) => Curve(&signature::ECDSA_P256_SHA256_FIXED),
            (Self::P384(_), Algorithm::Es384) => Curve(&signature::ECDSA_P384_SHA384_FIXED),
            (Self::Ed25519(_), Algorithm::EdDsa) => Curve(&signature::ED25519),
            (Self::Rsa { .. }, Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa)
            | (
                Self::P256(_) | Self::P384(_) | Self::Ed25519(_),
                Algorithm::Rs256
                | Algorithm::Rs384
                | Algorithm::Rs512
                | Algorithm::Ps256
                | Algorithm::Ps384
                | Algorithm::Ps512
                | Algorithm::Es256
                | Algorithm::Es384
                | Algorithm::EdDsa,
            ) => return None,
        })
    }

    fn digest(&self, algorithm: Option<Algorithm>) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(format!("{algorithm:?}\n").as_bytes());
        match self {
            Self::Rsa { modulus, exponent } => {
                context.update(b"rsa\n");
                context.update(modulus);
                context.update(exponent);
            }
            Self::P256(key) | Self::P384(key) | Self::Ed25519(key) => context.update(key),
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let is_used_so = jwk.get("use").is_none_or(|used| used == "sig");
    let may_verify = match jwk.get("key_ops") {
        None => true,
        Some(Value::Array(operations)) => operations.iter().any(|operation| operation == "verify"),
        Some(_) => false,
    };
    // A private key in a public key set is known to everybody who can read it.
    is_used_so && may_verify && !jwk.contains_key("d")
}

fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<Material> {
    let significant = |bytes: &[u8]| {
        bytes
            .iter()
            .copied()
            .skip_while(|byte| *byte == 0)
            .collect::<Vec<u8>>()
    };
    let (modulus, exponent) = (significant(modulus), significant(exponent));
    let is_sound =
        MODULUS_BYTES.contains(&modulus.len()) && (1..=MAX_EXPONENT_BYTES).contains(&exponent.len());
    is_sound.then_some(Material::Rsa { modulus, exponent })
}

/// An uncompressed point.
fn point(x: &str, y: &str, size: usize) -> Option<Vec<u8>> {
    let (x, y) = (bytes(x)?, bytes(y)?);
    if x.len() != size || y.len() != size {
        return None;
    }
    Some([&[4], x.as_slice(), y.as_slice()].concat())
}
