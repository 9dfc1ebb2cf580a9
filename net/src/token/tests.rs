use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::testing::{SigningKey, TestProvider, hmac, unsigned};
use super::*;
use crate::clock::Clock;
use crate::outbound::{Destination, Options, Outbound};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "toolgate";
/// Where a manual clock begins.
const NOW: i64 = 1_767_225_600;

/// A verifier of one provider's tokens, with a clock that stands still.
struct Rig {
    provider: TestProvider,
    keys: Keys,
    verifier: Verifier,
    clock: Clock,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Rig {
    async fn start(keys: &[&SigningKey]) -> Self {
        let provider = TestProvider::start(0, keys).await;
        Self::at(provider)
    }

    fn at(provider: TestProvider) -> Self {
        let clock = Clock::manual();
        let options = KeyOptions {
            url: provider.url().parse().unwrap(),
            token_file: None,
            clock: clock.clone(),
        };
        let client = Outbound::new(Options::new(Destination::Configured)).unwrap();
        let (keys, fetcher) = Keys::new(options, client);
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(fetcher.run(shutdown.clone()));
        tasks.close();
        let issuer = Issuer {
            name: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            keys: keys.clone(),
        };
        Self {
            provider,
            keys,
            verifier: Verifier::new(vec![issuer]),
            clock,
            shutdown,
            tasks,
        }
    }

    async fn verify(&self, token: &str) -> Result<Verified, TokenError> {
        self.verifier.verify(token).await
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
        self.provider.stop().await;
    }
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "billing", "exp": NOW + 600, "iat": NOW, "user": {"mail": "ann@example.com"}})
}

/// The claims with some replaced; `null` removes one.
fn claims_with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

#[tokio::test]
async fn every_algorithm_that_is_named_is_verified() {
    let (rsa, p256, p384, ed) = (
        SigningKey::rsa("r"),
        SigningKey::p256("p"),
        SigningKey::p384("q"),
        SigningKey::ed25519("e"),
    );
    let rig = Rig::start(&[&rsa, &p256, &p384, &ed]).await;
    for (key, algorithms) in [
        (&rsa, &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"][..]),
        (&p256, &["ES256"]),
        (&p384, &["ES384"]),
        (&ed, &["EdDSA"]),
    ] {
        for algorithm in algorithms {
            let verified = rig.verify(&key.token_by(algorithm, &claims())).await;
            let verified = verified.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
            assert_eq!(verified.claims.text("sub").unwrap(), "billing");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_signature_counts_with_the_key_and_the_algorithm_that_made_it() {
    let (rsa, p256, foreign) = (SigningKey::rsa("r"), SigningKey::p256("p"), SigningKey::p256("p"));
    let rig = Rig::start(&[&rsa, &p256]).await;
    let header = |algorithm: &str, id: &str| json!({"alg": algorithm, "kid": id});
    let good = p256.token(&claims());
    let (body, signature) = good.rsplit_once('.').unwrap();
    let other_claims = p256.token(&claims_with(json!({"sub": "root"})));
    let moved = format!("{}.{signature}", other_claims.rsplit_once('.').unwrap().0);
    let text = claims().to_string();
    let rs_as_ps = rsa.signed(&header("RS256", "r"), &text).replacen(
        good_header(&header("RS256", "r")).as_str(),
        good_header(&header("PS256", "r")).as_str(),
        1,
    );
    for (token, expected) in [
        (foreign.token(&claims()), TokenError::Signature),
        (moved, TokenError::Signature),
        (format!("{body}."), TokenError::Signature),
        (rs_as_ps, TokenError::Signature),
        // An algorithm of another kind of key.
        (p256.signed(&header("RS256", "p"), &text), TokenError::UnknownKey),
        (rsa.signed(&header("ES256", "r"), &text), TokenError::UnknownKey),
        (p256.signed(&header("ES384", "p"), &text), TokenError::UnknownKey),
        // The public key as a secret, and nothing at all.
        (
            hmac(&header("HS256", "r"), &claims(), &rsa.public_bytes()),
            TokenError::Algorithm,
        ),
        (
            hmac(&header("RS256", "r"), &claims(), &rsa.public_bytes()),
            TokenError::Signature,
        ),
        (unsigned(&header("none", "r"), &claims()), TokenError::Algorithm),
        (unsigned(&header("None", "r"), &claims()), TokenError::Algorithm),
        (unsigned(&json!({}), &claims()), TokenError::Algorithm),
        (unsigned(&header("RS256", "r"), &claims()), TokenError::Signature),
    ] {
        assert_eq!(rig.verify(&token).await.unwrap_err(), expected, "{token}");
    }
    assert!(rig.verify(&good).await.is_ok());
    rig.stop().await;
}

fn good_header(header: &Value) -> String {
    let token = unsigned(header, &json!({}));
    token.split('.').next().unwrap().to_owned()
}

#[tokio::test]
async fn claims_are_checked() {
    let key = SigningKey::ed25519("e");
    let rig = Rig::start(&[&key]).await;
    for (changes, expected) in [
        (json!({}), Ok(())),
        (json!({"exp": NOW - 29}), Ok(())),
        (json!({"exp": NOW - 31}), Err("expired")),
        (json!({"exp": null}), Err("\"exp\"")),
        (json!({"exp": "4000000000"}), Err("\"exp\"")),
        (json!({"exp": [NOW + 60]}), Err("\"exp\"")),
        (json!({"exp": 1e300}), Ok(())),
        (json!({"nbf": NOW + 29}), Ok(())),
        (json!({"nbf": NOW + 31}), Err("not valid yet")),
        (json!({"nbf": "0"}), Err("\"nbf\"")),
        (json!({"iat": "now"}), Err("\"iat\"")),
        (json!({"sub": 7}), Err("\"sub\"")),
        (json!({"iss": "https://issuer.example/"}), Err("issuer")),
        (json!({"iss": null}), Err("\"iss\"")),
        (json!({"iss": [ISSUER]}), Err("\"iss\"")),
        (json!({"aud": [AUDIENCE, "other"]}), Ok(())),
        (json!({"aud": "other"}), Err("audience")),
        (json!({"aud": ["other"]}), Err("audience")),
        (json!({"aud": [AUDIENCE, 1]}), Err("audience")),
        (json!({"aud": {AUDIENCE: true}}), Err("audience")),
        (json!({"aud": null}), Err("audience")),
        (json!({"aud": "toolgate-other"}), Err("audience")),
    ] {
        let found = rig.verify(&key.token(&claims_with(changes.clone()))).await;
        match (found, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{changes}: {error}"),
            (found, expected) => panic!("{changes}: {found:?}, not {expected:?}"),
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_no_token() {
    let key = SigningKey::ed25519("e");
    let rig = Rig::start(&[&key]).await;
    let header = json!({"alg": "EdDSA", "kid": "e"});
    let with = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        header
    };
    let text = claims().to_string();
    let twice = format!(r#"{{"sub":"root",{}"#, text.trim_start_matches('{'));
    let long = claims_with(json!({"pad": "x".repeat(MAX_TOKEN_BYTES)}));
    let good = key.token(&claims());
    let mut tokens = vec![
        key.signed(&header, &twice),
        key.signed(&header, "[]"),
        key.signed(&header, "not json"),
        key.signed(&header, ""),
        key.signed(&with("crit", json!(["exp"])), &text),
        key.signed(&with("b64", json!(false)), &text),
        key.signed(&with("typ", json!("logout+jwt")), &text),
        key.signed(&with("typ", json!(1)), &text),
        key.signed(&with("kid", json!(1)), &text),
        key.signed(&with("kid", json!("x".repeat(600))), &text),
        key.signed(&with("alg", json!(["EdDSA"])), &text),
        key.token(&long),
        format!("{good}.x"),
        format!("{good}="),
        format!(" {good}"),
        good.replacen('.', "", 1),
        good.replace('.', "/"),
        format!("{good}{good}"),
        String::new(),
        "...".to_owned(),
        "a.b.c".to_owned(),
        "\u{e9}.\u{e9}.\u{e9}".to_owned(),
    ];
    tokens.push(tokens[0].replace('e', "\0"));
    for token in tokens {
        let refused = rig.verify(&token).await;
        assert!(refused.is_err(), "{token}: {refused:?}");
    }
    for kind in ["jwt", "at+jwt", "application/at+jwt"] {
        assert!(
            rig.verify(&key.signed(&with("typ", json!(kind)), &text))
                .await
                .is_ok(),
            "{kind}"
        );
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_token_without_a_key_id_is_tried_with_the_keys_that_fit() {
    let (one, other) = (SigningKey::p256("1"), SigningKey::p256("2"));
    let rig = Rig::start(&[&one, &other]).await;
    let header = json!({"alg": "ES256"});
    assert!(
        rig.verify(&other.signed(&header, &claims().to_string()))
            .await
            .is_ok()
    );
    let foreign = SigningKey::p256("3").signed(&header, &claims().to_string());
    assert_eq!(rig.verify(&foreign).await.unwrap_err(), TokenError::Signature);
    rig.stop().await;
}

#[tokio::test]
async fn an_unknown_key_is_fetched_at_most_once_in_ten_seconds() {
    let (old, new) = (SigningKey::p256("old"), SigningKey::ed25519("new"));
    let rig = Rig::start(&[&old]).await;
    assert!(rig.verify(&old.token(&claims())).await.is_ok());
    assert_eq!(rig.provider.asked(), 1);
    rig.provider.publish(&[&old, &new]);
    let token = new.token(&claims());
    assert_eq!(rig.verify(&token).await.unwrap_err(), TokenError::UnknownKey);
    assert_eq!(rig.provider.asked(), 1, "it was fetched just now");
    rig.clock.advance(Duration::from_secs(10));
    let all = tokio::join!(rig.verify(&token), rig.verify(&token), rig.verify(&token));
    assert!(all.0.is_ok() && all.1.is_ok() && all.2.is_ok(), "{all:?}");
    assert_eq!(rig.provider.asked(), 2);
    for attempt in 0..50 {
        let guessed = SigningKey::p256(&format!("guessed {attempt}")).token(&claims());
        assert_eq!(rig.verify(&guessed).await.unwrap_err(), TokenError::UnknownKey);
    }
    assert_eq!(rig.provider.asked(), 2);
    rig.stop().await;
}

#[tokio::test]
async fn a_token_is_remembered_until_its_key_is_withdrawn_or_its_time_is_over() {
    let (old, new) = (SigningKey::p256("old"), SigningKey::p256("new"));
    let rig = Rig::start(&[&old]).await;
    let token = old.token(&claims());
    assert!(rig.verifier.recall(&token).is_none());
    assert!(rig.verify(&token).await.is_ok());
    assert!(rig.verifier.recall(&token).unwrap().is_ok());

    rig.clock.advance(Duration::from_secs(300));
    rig.provider.publish(&[&new]);
    rig.clock.advance(Duration::from_secs(10));
    assert!(rig.verify(&new.token(&claims())).await.is_ok());
    assert!(rig.verifier.recall(&token).is_none(), "its key is gone");
    assert_eq!(rig.verify(&token).await.unwrap_err(), TokenError::UnknownKey);

    let short = new.token(&claims());
    rig.clock.advance(Duration::from_secs(321));
    assert_eq!(rig.verify(&short).await.unwrap_err(), TokenError::Expired);
    rig.stop().await;
}

#[tokio::test]
async fn a_provider_that_is_away_leaves_the_last_good_keys_in_use() {
    let key = SigningKey::p256("k");
    let rig = Rig::start(&[&key]).await;
    assert!(rig.verify(&key.token(&claims())).await.is_ok());
    for broken in [
        None,
        Some(json!({"keys": []})),
        Some(json!([])),
        Some(json!({"keys": [{"kty": "oct", "k": "AAAA", "kid": "k"}]})),
    ] {
        let asked = rig.provider.asked();
        rig.provider.publish_set(broken.clone());
        rig.clock.advance(Duration::from_secs(300));
        let unknown = SigningKey::p256("other").token(&claims_with(json!({"exp": NOW + 6000})));
        assert_eq!(rig.verify(&unknown).await.unwrap_err(), TokenError::UnknownKey);
        assert!(rig.provider.asked() > asked);
        let fresh = key.token(&claims_with(json!({"exp": NOW + 6000, "jti": asked})));
        assert!(rig.verify(&fresh).await.is_ok(), "{broken:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_provider_that_is_away_at_the_start_is_tried_again_and_named() {
    let key = SigningKey::p256("k");
    let provider = TestProvider::start(0, &[]).await;
    provider.publish_set(None);
    let rig = Rig::at(provider);
    let token = key.token(&claims());
    assert_eq!(rig.verify(&token).await.unwrap_err(), TokenError::NotReady);
    let missing = rig.verifier.missing_keys();
    assert_eq!(missing[0].0, ISSUER);
    assert!(
        missing[0].1.problem.as_deref().unwrap().contains("503"),
        "{missing:?}"
    );
    rig.provider.publish(&[&key]);
    rig.clock.advance(Duration::from_secs(15));
    while rig.verify(&token).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(rig.verifier.missing_keys().is_empty());
    assert_eq!(rig.keys.state().problem, None, "nothing is wrong any more");
    rig.stop().await;
}

#[tokio::test]
async fn keys_that_are_no_sound_public_keys_are_left_out() {
    let good = SigningKey::p256("good");
    let provider = TestProvider::start(0, &[]).await;
    let mut jwks = Vec::new();
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("d", json!("AAAA")),
        ("alg", json!("HS256")),
        ("alg", json!("RS256")),
        ("x", json!("AAAA")),
    ] {
        let mut jwk = good.jwk();
        jwk["kid"] = json!(format!("bad {name}"));
        jwk[name] = value;
        jwks.push(jwk);
    }
    let mut short = SigningKey::rsa("short").jwk();
    short["n"] = json!("v".repeat(171));
    jwks.extend([short, json!("x"), json!({"kty": "AKP", "kid": "new"}), good.jwk()]);
    provider.publish_set(Some(json!({"keys": jwks})));
    let rig = Rig::at(provider);
    assert!(rig.verify(&good.token(&claims())).await.is_ok());
    let text = claims().to_string();
    for id in ["bad use", "bad key_ops", "bad d", "bad alg", "bad x"] {
        let token = good.signed(&json!({"alg": "ES256", "kid": id}), &text);
        assert_eq!(
            rig.verify(&token).await.unwrap_err(),
            TokenError::UnknownKey,
            "{id}"
        );
    }
    rig.stop().await;
}

#[tokio::test]
async fn claims_are_found_by_their_name_and_by_their_path() {
    let key = SigningKey::p256("k");
    let rig = Rig::start(&[&key]).await;
    let token = key.token(&claims_with(
        json!({"https://example.com/agent": "seven", "empty": "", "list": ["a"]}),
    ));
    let claims = rig.verify(&token).await.unwrap().claims;
    assert_eq!(claims.text("user.mail").unwrap(), "ann@example.com");
    assert_eq!(claims.text("https://example.com/agent").unwrap(), "seven");
    for name in [
        "empty",
        "list",
        "user",
        "user.mail.x",
        "nothing",
        "",
        ".",
        "user.",
    ] {
        assert_eq!(claims.text(name).unwrap_err(), TokenError::Claim(name.to_owned()));
    }
    rig.stop().await;
}
