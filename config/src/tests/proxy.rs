//! The proxy of outbound requests, in a file.

use crate::{Config, NoProxy};

fn read(text: &str) -> Result<Config, Vec<String>> {
    Config::parse("c.yaml", text, &std::iter::empty::<(&str, &str)>().collect())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_proxy_has_a_host_a_port_and_a_login_and_exceptions() {
    let text = "outbound:\n  proxy: http://tool%3Agate:p%40ss@proxy.internal\n  \
                no_proxy: [svc.cluster.local, .corp, 10.0.0.0/8, \"fd00::/8\", 192.0.2.7]\n";
    let outbound = read(text).unwrap().outbound;
    let proxy = outbound.proxy.unwrap();
    assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.internal", 3128));
    assert_eq!(proxy.login.username.as_deref(), Some("tool:gate"));
    assert_eq!(proxy.login.password.unwrap().expose(), "p@ss");
    assert_eq!(
        outbound.no_proxy,
        [
            NoProxy::Name("svc.cluster.local".to_owned()),
            NoProxy::Name("corp".to_owned()),
            NoProxy::Network("10.0.0.0".parse().unwrap(), 8),
            NoProxy::Network("fd00::".parse().unwrap(), 8),
            NoProxy::Network("192.0.2.7".parse().unwrap(), 32),
        ]
    );
    let environment = [("TOOLGATE_OUTBOUND_PROXY", "http://u:hunter2@[::1]:8080/")];
    let config = Config::parse("c.yaml", "", &environment.into_iter().collect()).unwrap();
    let proxy = config.outbound.proxy.unwrap();
    assert_eq!((proxy.host.as_str(), proxy.port), ("::1", 8080));
    assert!(!format!("{proxy:?}").contains("hunter2"));
}

#[test]
fn what_is_wrong_with_it_is_told_without_its_password() {
    for (text, expected) in [
        (
            "proxy: 'https://u:hunter2@h'",
            "expected a URL that starts with http://",
        ),
        ("proxy: 'socks5://h'", "expected a URL that starts with http://"),
        ("proxy: 'http://u:hunter2@'", "names no host"),
        (
            "proxy: 'http://u:hunter2@h:0'",
            "a port that is not a number from 1 to 65535",
        ),
        ("proxy: 'http://u:%zz@h'", "not percent-encoded UTF-8"),
        ("proxy: 'http://h/path'", "has no path and no query"),
        (
            "proxy: 'http://h', no_proxy: ['*.corp']",
            "expected a host such as",
        ),
        (
            "proxy: 'http://h', no_proxy: [10.0.0.0/33]",
            "expected a host such as",
        ),
        ("proxy: 'http://h', no_proxy: ['']", "expected a host such as"),
    ] {
        let found = read(&format!("outbound: {{{text}}}")).unwrap_err().join("\n");
        assert!(
            found.contains(expected) && !found.contains("hunter2"),
            "{text}: {found}"
        );
    }
}
