//! What is done to a window, in Lua: each script is atomic, by Redis' clock, and forgets first what is too old to count.
//!
//! A window is a hash, `l:<lease>` to the calls that count (with an `r` once something was given back) and `used` to their sum, and a
//! sorted set of the leases by the millisecond in which they were taken.

use std::time::Duration;

use redis::{Script, ScriptInvocation};

use super::{Places, Taken, millis};
use crate::store::quotas::{QuotaLot, TakenLot};

const BEGIN: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = tonumber(ARGV[1])
local lots, order = KEYS[1], KEYS[2]
local function text(number) return string.format('%.0f', number) end
local function calls(entry) return tonumber((string.gsub(entry, 'r', ''))) end
local used = tonumber(redis.call('HGET', lots, 'used') or '0')
local old = redis.call('ZRANGEBYSCORE', order, '-inf', text(now - window))
for _, id in ipairs(old) do
  local entry = redis.call('HGET', lots, 'l:' .. id)
  if entry then
    used = used - calls(entry)
    redis.call('HDEL', lots, 'l:' .. id)
  end
end
if #old > 0 then redis.call('ZREMRANGEBYSCORE', order, '-inf', text(now - window)) end
local function keep()
  if redis.call('ZCARD', order) == 0 then
    redis.call('DEL', lots, order)
  else
    redis.call('HSET', lots, 'used', text(used))
    redis.call('PEXPIRE', lots, window + 10000)
    redis.call('PEXPIRE', order, window + 10000)
  end
end
";

/// ARGV: window, lease, want, limit, seen, anchor, then lease, calls and age of each lot that is carried over.
/// Answers `forgotten`, or: granted, wait, seen, then lease, calls and age of each lot since `seen`.
const LEASE: &str = r"
if ARGV[6] ~= '' and redis.call('HEXISTS', lots, 'l:' .. ARGV[6]) == 0 then
  keep()
  return {'forgotten'}
end
local function put(id, count, at)
  redis.call('HSET', lots, 'l:' .. id, text(count))
  redis.call('ZADD', order, text(at), id)
  used = used + count
end
for i = 7, #ARGV, 3 do
  local age = tonumber(ARGV[i + 2])
  if age < window and redis.call('HEXISTS', lots, 'l:' .. ARGV[i]) == 0 then
    put(ARGV[i], tonumber(ARGV[i + 1]), now - age)
  end
end
local granted, wait = 0, 0
local known = redis.call('HGET', lots, 'l:' .. ARGV[2])
if known then
  granted = calls(known)
else
  granted = math.max(0, math.min(tonumber(ARGV[3]), tonumber(ARGV[4]) - used))
  if granted > 0 then
    put(ARGV[2], granted, now)
  else
    wait = 1000
    local from, found = 0, false
    repeat
      local page = redis.call('ZRANGE', order, from, from + 63, 'WITHSCORES')
      for i = 1, #page, 2 do
        if not found and calls(redis.call('HGET', lots, 'l:' .. page[i]) or '0') > 0 then
          found = true
          wait = math.max(1, tonumber(page[i + 1]) + window - now)
        end
      end
      from = from + 64
    until found or #page == 0
  end
end
local answer = {text(granted), text(wait), ARGV[5]}
local news = redis.call('ZRANGEBYSCORE', order, ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
for i = 1, #news, 2 do
  local entry = redis.call('HGET', lots, 'l:' .. news[i])
  if entry then
    answer[3] = text(tonumber(news[i + 1]))
    answer[#answer + 1] = news[i]
    answer[#answer + 1] = text(calls(entry))
    answer[#answer + 1] = text(math.max(0, now - tonumber(news[i + 1])))
  end
end
keep()
return answer
";

/// ARGV: window, lease, unused.
const GIVE_BACK: &str = r"
local entry = redis.call('HGET', lots, 'l:' .. ARGV[2])
if entry and not string.find(entry, 'r', 1, true) then
  local given = math.min(tonumber(ARGV[3]), calls(entry))
  redis.call('HSET', lots, 'l:' .. ARGV[2], text(calls(entry) - given) .. 'r')
  used = used - given
end
keep()
return {text(used)}
";

const USED: &str = r"
keep()
return {text(used)}
";

/// The leases stay known, so that a lot that is under way is not taken twice, and count nothing.
const RESET: &str = r"
for _, id in ipairs(redis.call('ZRANGE', order, 0, -1)) do
  redis.call('HSET', lots, 'l:' .. id, '0r')
end
used = 0
keep()
return {'0'}
";

/// ARGV: how long the list remembers, name of a window. Of the two keys only the order is used.
const LIST: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - ARGV[1]))
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return {}
";

/// ARGV: how long the list remembers, how many.
const LISTED: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', string.format('%.0f', now - ARGV[1]), 'LIMIT', 0, ARGV[2])
";

/// Everything that is done to windows.
pub(super) struct Scripts {
    pub(super) lease: Step,
    pub(super) give_back: Step,
    pub(super) used: Step,
    pub(super) reset: Step,
    pub(super) list: Step,
    pub(super) listed: Step,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let on_window = |rest: &str| Step(Script::new(&format!("{BEGIN}{rest}")));
        Self {
            lease: on_window(LEASE),
            give_back: on_window(GIVE_BACK),
            used: on_window(USED),
            reset: on_window(RESET),
            list: Step(Script::new(LIST)),
            listed: Step(Script::new(LISTED)),
        }
    }
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripts")
    }
}

/// One script.
pub(super) struct Step(Script);

/// A script with its keys and arguments.
pub(super) type Call<'s> = ScriptInvocation<'s>;

impl Step {
    pub(super) fn call(&self, Places([lots, order]): &Places, length: Duration) -> Call<'_> {
        let mut call = self.0.prepare_invoke();
        call.key(lots).key(order).arg(millis(length));
        call
    }
}

/// Reads the answer of a lease; `None`: it makes no sense.
pub(super) fn taken(answer: &[String]) -> Option<Taken> {
    let nothing = QuotaLot {
        granted: 0,
        retry_after: None,
    };
    if answer.first().is_some_and(|word| word == "forgotten") {
        return Some(Taken {
            is_forgotten: true,
            lot: nothing,
            seen: 0,
            news: Vec::new(),
        });
    }
    let (head, news) = answer.split_at_checked(3)?;
    let [granted, wait, seen] = head else { return None };
    let granted = granted.parse().ok()?;
    let wait = wait.parse().ok()?;
    let news = news.chunks_exact(3).map(|lot| {
        let [lease_id, calls, age] = lot else { return None };
        Some(TakenLot {
            lease_id: lease_id.clone(),
            age: Duration::from_millis(age.parse().ok()?),
            granted: calls.parse().ok()?,
        })
    });
    Some(Taken {
        is_forgotten: false,
        lot: QuotaLot {
            granted,
            retry_after: (granted == 0).then(|| Duration::from_millis(wait)),
        },
        seen: seen.parse().ok()?,
        news: news.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Taken> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        taken(&words)
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_none() {
        assert!(read(&["forgotten"]).unwrap().is_forgotten);
        let found = read(&["0", "250", "77", "a", "3", "10"]).unwrap();
        assert_eq!(found.lot.retry_after, Some(Duration::from_millis(250)));
        assert_eq!((found.seen, found.news.len()), (77, 1));
        for words in [
            &[][..],
            &["1", "2"],
            &["x", "0", "0"],
            &["1", "0", "0", "a", "-1", "0"],
        ] {
            assert!(read(words).is_none(), "{words:?}");
        }
    }
}
