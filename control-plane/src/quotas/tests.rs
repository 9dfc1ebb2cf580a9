//! Windows over real servers: Redis of the tests' own, killed and brought back, and a Postgres that replicas share.

use std::time::{Duration, Instant};

use config::RedisUrl;
use net::clock::Clock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{CountedIn, RedisServer, Windows};
use crate::metrics::Metrics;
use crate::store::quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaRequest};
use crate::store::{self, SharedStore};
use crate::testing::{Cluster, RedisCluster, RedisOptions, RedisServer as Server, Sentinel};

struct Replica {
    windows: Windows,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Replica {
    fn new(url: &str, ca_cert: Option<&std::path::Path>, shared: Option<SharedStore>) -> Self {
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let server = RedisServer {
            url: url.parse::<RedisUrl>().unwrap(),
            ca_cert: ca_cert.map(std::path::Path::to_owned),
        };
        let windows = Windows::start(
            Some(server),
            shared,
            &Clock::machine(),
            &Metrics::default(),
            (&tasks, &shutdown),
        );
        Self {
            windows: windows.unwrap(),
            tasks,
            shutdown,
        }
    }

    async fn counts_in(&self, place: CountedIn) {
        let begun = Instant::now();
        while self.windows.counted_in() != place {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "never counted in {place:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn take(&self, lease_id: &str, want: u32) -> u32 {
        let request = QuotaRequest {
            key: key("claude"),
            lease_id: lease_id.to_owned(),
            want,
            limit: 100,
        };
        self.windows.lease(&request, 0).await.unwrap().granted
    }

    async fn used(&self) -> u64 {
        let uses = self.windows.uses(&QuotaFilter::default()).await.unwrap();
        uses.first().map_or(0, |first| first.used)
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn key(agent: &str) -> QuotaKey {
    QuotaKey {
        policy: "support {all}".to_owned(),
        namespace: "default".to_owned(),
        agent: agent.to_owned(),
        kind: QuotaKind::PerMinute,
    }
}

/// What every way of running Redis must do, seen by two replicas.
async fn counts_for_the_fleet(one: &Replica, two: &Replica) {
    one.counts_in(CountedIn::Redis).await;
    two.counts_in(CountedIn::Redis).await;
    assert_eq!(one.take("a", 40).await, 40);
    assert_eq!(
        two.take("a", 40).await,
        40,
        "a repeated lease takes nothing twice"
    );
    assert_eq!(two.take("b", 80).await, 60);
    assert_eq!(one.take("c", 1).await, 0);
    one.windows.give_back(&key("claude"), "b", 25).await.unwrap();
    two.windows.give_back(&key("claude"), "b", 25).await.unwrap();
    assert_eq!(one.used().await, 75);
    let (first, second) = tokio::join!(one.take("d", 20), two.take("e", 20));
    assert_eq!(first + second, 25);
    let request = QuotaRequest {
        key: key("claude"),
        lease_id: "f".to_owned(),
        want: 1,
        limit: 100,
    };
    let refused = two.windows.lease(&request, 0).await.unwrap();
    let wait = refused.retry_after.unwrap();
    assert!(
        wait > Duration::from_secs(30) && wait <= Duration::from_secs(60),
        "{wait:?}"
    );
    let other = QuotaFilter {
        agent: Some("nobody".to_owned()),
        ..QuotaFilter::default()
    };
    assert_eq!(two.windows.reset(&other).await, 0);
    assert_eq!(two.windows.reset(&QuotaFilter::default()).await, 1);
    assert_eq!(one.used().await, 0);
    assert_eq!(one.take("g", 100).await, 100);
}

async fn passes(url: &str, ca_cert: Option<&std::path::Path>) {
    let (one, two) = (Replica::new(url, ca_cert, None), Replica::new(url, ca_cert, None));
    counts_for_the_fleet(&one, &two).await;
    one.end().await;
    two.end().await;
}

#[tokio::test]
async fn one_redis_counts_for_the_fleet() {
    let server = Server::start(&RedisOptions::default()).unwrap();
    passes(&server.url(), None).await;
}

#[tokio::test]
async fn redis_is_reached_by_tls_with_a_password_and_only_where_its_certificate_is_trusted() {
    let options = RedisOptions {
        password: Some("p@ss word"),
        is_tls: true,
        ..RedisOptions::default()
    };
    let server = Server::start(&options).unwrap();
    let url = server.url();
    assert!(url.starts_with("rediss://:p%40ss%20word@"), "{url}");
    passes(&url, Some(&server.ca_file())).await;
    let strangers = Replica::new(&url, None, None);
    assert_eq!(strangers.take("z", 1).await, 1);
    assert_eq!(strangers.windows.counted_in(), CountedIn::Memory);
    strangers.end().await;
}

#[tokio::test]
async fn sentinels_name_the_redis_that_counts() {
    let server = Server::start(&RedisOptions::default()).unwrap();
    let sentinel = Sentinel::start(&server).unwrap();
    passes(&sentinel.url(), None).await;
}

#[tokio::test]
async fn a_cluster_counts_for_the_fleet() {
    let cluster = RedisCluster::start().unwrap();
    passes(&cluster.url(), None).await;
}

#[tokio::test]
async fn a_window_goes_on_when_redis_is_killed_and_when_it_is_back_with_nothing() {
    let postgres = Cluster::start().unwrap();
    let location = postgres.database("toolgate").unwrap();
    let shared = async || Some(store::open(&location).await.unwrap());
    let mut server = Server::start(&RedisOptions::default()).unwrap();
    let one = Replica::new(&server.url(), None, shared().await);
    let two = Replica::new(&server.url(), None, shared().await);
    one.counts_in(CountedIn::Redis).await;
    two.counts_in(CountedIn::Redis).await;
    assert_eq!(one.take("a", 30).await, 30);
    assert_eq!(two.take("b", 10).await, 10);
    server.kill();
    assert_eq!(two.take("c", 10).await, 10, "the next place is asked at once");
    assert_eq!(
        one.take("d", 100).await,
        50,
        "all that was taken in Redis still counts"
    );
    assert_eq!(one.windows.counted_in(), CountedIn::Postgres);
    one.windows.give_back(&key("claude"), "d", 20).await.unwrap();
    server.boot().unwrap();
    one.counts_in(CountedIn::Redis).await;
    assert_eq!(
        one.take("e", 100).await,
        20,
        "what was counted elsewhere still counts"
    );
    two.counts_in(CountedIn::Redis).await;
    assert_eq!(two.take("f", 1).await, 0);
    assert_eq!(two.used().await, 100);
    one.end().await;
    two.end().await;
}

#[tokio::test]
async fn a_redis_that_has_forgotten_is_told_again() {
    let server = Server::start(&RedisOptions::default()).unwrap();
    let one = Replica::new(&server.url(), None, None);
    one.counts_in(CountedIn::Redis).await;
    assert_eq!(one.take("a", 90).await, 90);
    server.command(&["FLUSHALL"]).unwrap();
    assert_eq!(one.take("b", 90).await, 10);
    one.end().await;
}

#[tokio::test]
async fn a_redis_that_takes_no_writes_counts_nothing() {
    let server = Server::start(&RedisOptions::default()).unwrap();
    let one = Replica::new(&server.url(), None, None);
    one.counts_in(CountedIn::Redis).await;
    assert_eq!(one.take("a", 90).await, 90);
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert_eq!(one.take("b", 90).await, 10);
    one.counts_in(CountedIn::Memory).await;
    server.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    one.counts_in(CountedIn::Redis).await;
    assert_eq!(one.take("c", 90).await, 0);
    one.end().await;
}

#[tokio::test]
async fn calls_that_ran_while_nobody_answered_count() {
    let server = Server::start(&RedisOptions::default()).unwrap();
    let one = Replica::new(&server.url(), None, None);
    one.counts_in(CountedIn::Redis).await;
    let request = QuotaRequest {
        key: key("claude"),
        lease_id: "a".to_owned(),
        want: 10,
        limit: 100,
    };
    assert_eq!(one.windows.lease(&request, 85).await.unwrap().granted, 10);
    assert_eq!(one.take("b", 90).await, 5);
    one.end().await;
}
