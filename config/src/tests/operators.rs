//! Operators by an identity provider, in a file.

use crate::Config;
use crate::model::RoleName;

fn read(text: &str) -> Result<Config, Vec<String>> {
    Config::parse("c.yaml", text, &std::iter::empty::<(&str, &str)>().collect())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

const WHOLE: &str = "auth:\n  operators:\n    jwks_url: https://id.example/jwks\n    issuer: https://id.example\n    audience: toolgate\n";

#[test]
fn a_provider_gives_roles_by_the_values_of_a_claim() {
    let text = format!(
        "{WHOLE}    roles:\n      - {{value: platform, role: admin}}\n      - {{value: a, role: editor, namespaces: [team-a]}}\n"
    );
    let operators = read(&text).unwrap().auth.operators.unwrap();
    assert_eq!(
        (operators.name_claim.as_str(), operators.role_claim.as_str()),
        ("sub", "roles")
    );
    assert_eq!(operators.roles[0].role, RoleName::Admin);
    assert_eq!(operators.roles[1].namespaces[0].as_str(), "team-a");
    assert!(read("").unwrap().auth.operators.is_none());
}

#[test]
fn the_audience_of_agents_and_an_authority_that_nothing_uses_are_refused() {
    let roles = "    roles: [{value: a, role: admin}]\n";
    let same =
        "  jwt: {jwks_url: 'https://id.example/jwks', issuer: 'https://id.example', audience: toolgate}\n";
    let found = read(&format!("{WHOLE}{roles}{same}")).unwrap_err();
    assert!(
        found[0].contains("auth.operators.audience must not be that of auth.jwt"),
        "{found:?}"
    );
    let other = same.replace("audience: toolgate", "audience: toolgate-agents");
    assert!(read(&format!("{WHOLE}{roles}{other}")).is_ok());
    let plain = WHOLE.replace("https://id.example/jwks", "http://id.example/jwks");
    let found = read(&format!("{plain}    ca_cert: ca.pem\n{roles}")).unwrap_err();
    assert!(
        found[0].contains("auth.operators.ca_cert needs a jwks_url that starts with https://"),
        "{found:?}"
    );
}

#[test]
fn what_is_missing_or_wrong_is_told() {
    assert_eq!(
        read(WHOLE).unwrap_err(),
        [
            "c.yaml:3:5 auth.operators needs roles, such as {value: platform, role: admin}; without one no token opens anything"
        ]
    );
    let found = read("auth: {operators: {roles: [{value: a, role: root}]}}")
        .unwrap_err()
        .join("\n");
    for expected in [
        "needs the key \"jwks_url\"",
        "needs the key \"issuer\"",
        "needs the key \"audience\"",
        "role: \"root\" is unknown",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}
