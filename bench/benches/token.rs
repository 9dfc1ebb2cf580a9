//! What the token of a call costs: its signature, with the issuer's key in memory, the first time; then its digest.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use net::clock::Clock;
use net::outbound::{Destination, Options, Outbound};
use net::token::testing::{SigningKey, TestProvider};
use net::token::{Issuer, KeyOptions, Keys, Verifier};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Keys that were fetched from a provider of this process.
fn keys(runtime: &Runtime, signing: &[&SigningKey]) -> Option<Keys> {
    let provider = runtime.block_on(TestProvider::start(0, signing));
    let options = KeyOptions {
        url: provider.url().parse().ok()?,
        token_file: None,
        clock: Clock::machine(),
    };
    let client = Outbound::new(Options::new(Destination::Configured)).ok()?;
    let (keys, fetcher) = Keys::new(options, client);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    tasks.spawn_on(fetcher.run(stop.clone()), runtime.handle());
    while keys.state().keys.is_none() {
        runtime.block_on(tokio::task::yield_now());
    }
    stop.cancel();
    tasks.close();
    runtime.block_on(tasks.wait());
    Some(keys)
}

fn verifier(keys: &Keys) -> Verifier {
    Verifier::new(vec![Issuer {
        name: "https://issuer.example".to_owned(),
        audience: "toolgate".to_owned(),
        keys: keys.clone(),
    }])
}

fn tokens(criterion: &mut Criterion) {
    let Ok(runtime) = Runtime::new() else { return };
    let signing = [
        ("RS256", SigningKey::rsa("r")),
        ("ES256", SigningKey::p256("p")),
        ("EdDSA", SigningKey::ed25519("e")),
    ];
    let published: Vec<&SigningKey> = signing.iter().map(|(_, key)| key).collect();
    let Some(keys) = keys(&runtime, &published) else {
        return;
    };
    let exp = Clock::machine().wall_micros() / 1_000_000 + 86_400;
    let claims = json!({
        "iss": "https://issuer.example", "aud": ["toolgate", "https://tools.example.com"], "sub": "ann", "exp": exp, "nbf": 0,
        "iat": 0, "jti": "6e0f4c1a-1f65-4b0e-9a0f-6f2f4c7f7d8e", "azp": "billing", "scope": "openid tools", "roles": ["a", "b"],
    });
    let mut group = criterion.benchmark_group("JWT verification per call (cached key)");
    for (name, key) in &signing {
        let token = key.token(&claims);
        group.bench_function(format!("{name}, first time"), |bencher| {
            bencher.iter_batched_ref(
                || verifier(&keys),
                |verifier| runtime.block_on(verifier.verify(black_box(&token))).is_ok(),
                BatchSize::SmallInput,
            );
        });
        let known = verifier(&keys);
        if runtime.block_on(known.verify(&token)).is_err() {
            return;
        }
        group.bench_function(format!("{name}, known"), |bencher| {
            bencher.iter(|| known.recall(black_box(&token)));
        });
    }
    group.finish();
}

criterion_group!(benches, tokens);
criterion_main!(benches);
