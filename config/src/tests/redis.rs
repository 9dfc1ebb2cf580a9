//! Where Redis is, in a file.

use crate::{Config, RedisMode};

fn read(text: &str) -> Result<Config, Vec<String>> {
    Config::parse("c.yaml", text, &std::iter::empty::<(&str, &str)>().collect())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn redis_is_named_by_file_or_by_variable() {
    let by_file = read("redis_url: rediss-cluster://a:1,b:2\nredis_ca_cert: ca.pem\n").unwrap();
    assert_eq!(by_file.redis_url.unwrap().mode, RedisMode::Cluster);
    assert!(by_file.redis_ca_cert.is_some());
    let environment = [("TOOLGATE_REDIS_URL", "redis://u:p@h/1")].into_iter().collect();
    let by_variable = Config::parse("c.yaml", "", &environment).unwrap();
    assert_eq!(by_variable.redis_url.unwrap().database, 1);
}

#[test]
fn what_is_wrong_with_it_is_told_without_its_password() {
    for (text, expected) in [
        (
            "redis_url: redis://u:hunter2@/1",
            "c.yaml:1:12 redis_url: the URL names no host where one is expected; write host:port, several separated by commas",
        ),
        (
            "redis_url: redis-sentinel://u:hunter2@h",
            "c.yaml:1:12 redis_url: redis-sentinel:// needs the master's name as its path, as in redis-sentinel://host:26379/mymaster",
        ),
        (
            "redis_url: 3",
            "c.yaml:1:12 redis_url: expected a string; put it in quotes",
        ),
        (
            "redis_url: redis://h\nredis_ca_cert: ca.pem",
            "c.yaml:2:16 redis_ca_cert needs a redis_url by TLS: rediss://, rediss-sentinel:// or rediss-cluster://",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), [expected]);
    }
}
