mod proofs;

use http::HeaderMap;

use super::*;

fn scope(globs: &[&str]) -> AgentScope {
    AgentScope::new(
        globs.iter().map(|glob| glob.parse().unwrap()).collect(),
        Vec::new(),
    )
}

fn headers(credentials: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for credential in credentials {
        headers.append("authorization", credential.parse().unwrap());
    }
    headers
}

async fn resolve(identities: &Identities, credentials: &[&str]) -> Result<Identity, IdentityError> {
    identities
        .resolve(&headers(credentials), None, &scope(&["*"]))
        .await
}

#[tokio::test]
async fn a_plaintext_agent_is_asserted() {
    let identity = resolve(&Identities::new(None, true), &["Bearer agent:support-7"])
        .await
        .unwrap();
    assert_eq!(identity.agent.as_str(), "support-7");
    assert_eq!(identity.strength, Strength::Asserted);
}

#[tokio::test]
async fn no_credential_is_anonymous_unless_one_is_required() {
    let identity = resolve(&Identities::new(None, false), &[]).await.unwrap();
    assert_eq!(
        (identity.agent.as_str(), identity.strength),
        ("anonymous", Strength::Anonymous)
    );
    assert_eq!(
        resolve(&Identities::new(None, true), &[]).await,
        Err(IdentityError::Required)
    );
}

#[tokio::test]
async fn a_token_that_nothing_verifies_is_refused() {
    for credential in ["Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer secret"] {
        assert_eq!(
            resolve(&Identities::new(None, false), &[credential]).await,
            Err(IdentityError::Unverifiable)
        );
    }
}

#[tokio::test]
async fn two_credentials_or_another_scheme_are_refused() {
    let identities = Identities::new(None, false);
    for credentials in [
        &["Bearer agent:a", "Bearer agent:b"][..],
        &["Basic YTpi"],
        &["agent:a"],
    ] {
        assert_eq!(
            resolve(&identities, credentials).await,
            Err(IdentityError::Unreadable)
        );
    }
    assert!(matches!(
        resolve(&identities, &["Bearer agent:"]).await,
        Err(IdentityError::Unreadable | IdentityError::Name(_))
    ));
}

#[tokio::test]
async fn a_bound_entrance_refuses_a_credential_of_another_agent() {
    let identities = Identities::new(Some("desk".parse().unwrap()), true);
    for credentials in [&[][..], &["Bearer agent:desk"]] {
        assert_eq!(
            resolve(&identities, credentials).await.unwrap().strength,
            Strength::Bound
        );
    }
    assert!(matches!(
        resolve(&identities, &["Bearer agent:other"]).await,
        Err(IdentityError::Bound { .. })
    ));
}

#[tokio::test]
async fn an_agent_outside_the_credential_is_refused() {
    let identities = Identities::new(None, false);
    let narrowed = AgentScope::new(vec!["support-*".parse().unwrap()], vec!["*-7".parse().unwrap()]);
    let resolve = async |agent: &str| {
        let headers = headers(&[&format!("Bearer agent:{agent}")]);
        identities.resolve(&headers, None, &narrowed).await
    };
    assert!(resolve("support-7").await.is_ok());
    for agent in ["support-8", "sales-7"] {
        assert_eq!(
            resolve(agent).await.unwrap_err().status(),
            http::StatusCode::FORBIDDEN
        );
    }
    assert_eq!(
        AgentScope::new(Vec::new(), Vec::new()).covers(&"anyone".parse().unwrap()),
        Coverage::Outside
    );
}

#[tokio::test]
async fn before_enrolment_nobody_is_served() {
    let refused = Identities::new(None, false)
        .resolve(&headers(&["Bearer agent:a"]), None, &AgentScope::default())
        .await
        .unwrap_err();
    assert_eq!(
        (refused.clone(), refused.status().as_u16()),
        (IdentityError::NotEnrolled, 503)
    );
}
