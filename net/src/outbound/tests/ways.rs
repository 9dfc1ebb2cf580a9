//! The ways to a server: public addresses for what others name, a proxy for what operators configure, and trust that changes.

use std::collections::HashMap;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::testing::TestProxy;
use super::*;
use crate::clock::Clock;
use crate::tls::{TestCertificates, self_signed};

/// A resolver that knows some names.
#[derive(Debug)]
struct Known(HashMap<&'static str, &'static str>);

impl Resolver for Known {
    fn resolve<'r>(&'r self, name: &'r str) -> Addresses<'r> {
        let address = self.0.get(name).map(|address| vec![address.parse().unwrap()]);
        Box::pin(std::future::ready(
            address.ok_or_else(|| io::Error::other("no such name")),
        ))
    }
}

/// A client in an internet of the tests' own, where `public.example` and `other.example` have public addresses that lead to this machine.
fn in_public(destination: Destination, proxy: Option<Arc<Proxy>>) -> Outbound {
    let names = HashMap::from([
        ("public.example", "1.1.1.1"),
        ("other.example", "2606:4700:4700::1111"),
        ("inside.example", "10.0.0.7"),
        ("local.example", "127.0.0.1"),
        ("link.example", "169.254.169.254"),
        ("mapped.example", "::ffff:127.0.0.1"),
    ]);
    let here: IpAddr = "127.0.0.1".parse().unwrap();
    Outbound::new(Options {
        resolver: Arc::new(Known(names)),
        proxy,
        network: ["1.1.1.1", "2606:4700:4700::1111"]
            .map(|address| (address.parse().unwrap(), here))
            .into(),
        ..Options::new(destination)
    })
    .unwrap()
}

fn proxy_at(address: SocketAddr, login: Option<(&str, &str)>) -> Arc<Proxy> {
    Arc::new(Proxy::new(ProxyOptions {
        host: address.ip().to_string(),
        port: address.port(),
        login: login.map(|(user, password)| (user.to_owned(), password.to_owned())),
        direct_names: vec!["near.example".to_owned()],
        direct_networks: vec![("192.168.0.0".parse().unwrap(), 16)],
    }))
}

#[tokio::test]
async fn what_others_name_is_reached_in_public_and_never_led_inside() {
    let inside = Server::start(hello()).await;
    let port = inside.address.port();
    let other = Server::start(hello()).await;
    let to_other = other.url("other.example", "/").to_string();
    let places = [
        format!("http://local.example:{port}/"),
        format!("http://inside.example:{port}/"),
        format!("http://mapped.example:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://2130706433:{port}/"),
        "http://10.0.0.7/".to_owned(),
        "http://link.example/latest/meta-data/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://metadata.google.internal/".to_owned(),
    ];
    let mut router = hello().route(
        "/other",
        get(move || std::future::ready(redirect(StatusCode::FOUND, to_other.clone()))),
    );
    for (number, place) in places.iter().cloned().enumerate() {
        router = router.route(
            &format!("/to/{number}"),
            get(move || std::future::ready(redirect(StatusCode::TEMPORARY_REDIRECT, place.clone()))),
        );
    }
    let server = Server::start(router).await;
    let client = in_public(Destination::Named, None);
    for host in ["public.example", "1.1.1.1"] {
        let answer = fetch(&client, server.url(host, "/")).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{host}");
    }
    let header = http::HeaderName::from_static("x-api-key");
    let asked = |path: &str| {
        OutboundRequest::get(server.url("public.example", path))
            .header(header.clone(), HeaderValue::from_static("hunter2"))
            .redirects(Redirects::Anywhere(3))
    };
    let answer = client.send(asked("/other")).await.unwrap();
    assert_eq!((answer.status, other.requests()), (StatusCode::OK, 1));
    assert!(!String::from_utf8_lossy(&answer.body).contains("hunter2"));
    for (number, place) in places.iter().enumerate() {
        let refused = client.send(asked(&format!("/to/{number}"))).await.unwrap_err();
        assert!(
            matches!(refused, OutboundError::Forbidden { .. }),
            "{place}: {refused}"
        );
        let refused = fetch(&client, place.parse().unwrap()).await.unwrap_err();
        assert!(
            matches!(refused, OutboundError::Forbidden { .. }),
            "{place}: {refused}"
        );
    }
    assert_eq!(inside.requests(), 0);
    for server in [inside, other, server] {
        server.stop().await;
    }
}

#[tokio::test]
async fn configured_urls_go_through_the_proxy_to_addresses_that_were_checked_here() {
    let server = Server::start(hello()).await;
    let port = server.address.port();
    let proxy = TestProxy::start(Some("gate:hunter2")).await;
    let client = in_public(
        Destination::Configured,
        Some(proxy_at(proxy.address(), Some(("gate", "hunter2")))),
    );
    for host in ["public.example", "inside.example", "10.1.2.3", "other.example"] {
        let answer = fetch(&client, server.url(host, "/")).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{host}");
        let told = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!told.contains("proxy-authorization"), "{told}");
    }
    let through = [
        format!("1.1.1.1:{port}"),
        format!("10.0.0.7:{port}"),
        format!("10.1.2.3:{port}"),
        format!("[2606:4700:4700::1111]:{port}"),
    ];
    assert_eq!(proxy.tunnels(), through);

    // What is on this machine needs no proxy, and what must not be reached is not reached by one either.
    assert!(fetch(&client, server.url("local.example", "/")).await.is_ok());
    for host in ["link.example", "169.254.169.254", "metadata.google.internal"] {
        let refused = fetch(&client, server.url(host, "/")).await.unwrap_err();
        assert!(
            matches!(refused, OutboundError::Forbidden { .. }),
            "{host}: {refused}"
        );
    }
    let unknown = fetch(&client, server.url("nowhere.example", "/"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, OutboundError::Resolve { .. }), "{unknown}");
    assert_eq!(proxy.tunnels(), through);

    // What others name never goes through it.
    let named = in_public(Destination::Named, Some(proxy_at(proxy.address(), None)));
    assert!(fetch(&named, server.url("public.example", "/")).await.is_ok());
    assert_eq!(proxy.tunnels(), through);
    proxy.stop().await;
    server.stop().await;
}

/// Says something to whoever connects, and hangs up or not.
async fn answering(text: &'static [u8], hangs_up: bool) -> (SocketAddr, TaskTracker) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = TaskTracker::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = [0; 256];
        let _ = stream.read(&mut asked).await;
        let _ = stream.write_all(text).await;
        if !hangs_up {
            let _ = stream.read(&mut asked).await;
        }
    });
    tasks.close();
    (address, tasks)
}

#[tokio::test]
async fn a_proxy_that_does_not_do_its_work_is_told_in_bounded_time_without_its_password() {
    static FLOOD: [u8; 20_000] = [b'x'; 20_000];
    let wrong = TestProxy::start(Some("gate:another")).await;
    let mut cases = vec![(wrong.address(), None, "wants a login")];
    for (text, hangs_up, expected) in [
        (
            b"HTTP/1.1 403 Forbidden\r\n\r\n" as &'static [u8],
            true,
            "with status 403",
        ),
        (b"SSH-2.0-server\r\n\r\n", true, "does not answer as a proxy does"),
        (b"HTTP/1.1 200", true, "ended the connection"),
        (b"", true, "ended the connection"),
        (&FLOOD, false, "with too much"),
        (b"HTTP/1.1 200 OK\r\n", false, "no connection within"),
    ] {
        let (address, tasks) = answering(text, hangs_up).await;
        cases.push((address, Some(tasks), expected));
    }
    for (address, tasks, expected) in cases {
        let client = Outbound::new(Options {
            proxy: Some(proxy_at(address, Some(("gate", "hunter2")))),
            connect_patience: Duration::from_millis(500),
            ..Options::new(Destination::Configured)
        })
        .unwrap();
        let refused = fetch(&client, "http://10.1.2.3:81/".parse().unwrap()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
        if let Some(tasks) = tasks {
            tasks.wait().await;
        }
    }
    wrong.stop().await;
}

async fn encrypted(certificates: &TestCertificates, folder: &Path) -> Server {
    std::fs::create_dir_all(folder).unwrap();
    let (_, files) = certificates.write(folder).unwrap();
    let tls = ServerTls::load(files, Clock::machine()).await.unwrap();
    Server::start_with(hello(), Some(tls)).await
}

#[tokio::test]
async fn an_authority_that_is_replaced_is_trusted_without_a_restart_and_the_former_one_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let authority = || self_signed(&["inside.example"], Duration::from_secs(3600)).unwrap();
    let (old, new) = (authority(), authority());
    let (before, after) = (
        encrypted(&old, &folder.path().join("old")).await,
        encrypted(&new, &folder.path().join("new")).await,
    );
    let ca_file = folder.path().join("trusted.pem");
    std::fs::write(&ca_file, &old.ca).unwrap();
    let proxy = TestProxy::start(None).await;
    let client = Outbound::new(Options {
        resolver: Scripted::new(&[&["10.0.0.7"]]),
        // Through the tunnel it is the server's certificate that is checked, under its name.
        proxy: Some(proxy_at(proxy.address(), None)),
        ..Options::new(Destination::Configured)
            .trusting(Some(&ca_file))
            .unwrap()
    })
    .unwrap();
    let serves = async |server: &Server| {
        let url = format!("https://inside.example:{}/", server.address.port());
        fetch(&client, url.parse().unwrap()).await.is_ok()
    };
    assert!(serves(&before).await && !serves(&after).await);
    std::fs::write(&ca_file, &new.ca).unwrap();
    // The connection that was made under the old authority is not used any more.
    assert!(!serves(&before).await && serves(&after).await);
    std::fs::write(&ca_file, "not a certificate").unwrap();
    assert!(serves(&after).await && !serves(&before).await);
    std::fs::remove_file(&ca_file).unwrap();
    assert!(serves(&after).await);
    std::fs::write(&ca_file, format!("{}{}", old.ca, new.ca)).unwrap();
    assert!(serves(&before).await && serves(&after).await);
    proxy.stop().await;
    before.stop().await;
    after.stop().await;
}
