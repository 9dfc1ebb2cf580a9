//! The reader of event streams finds the same events however the bytes are cut, leaves out what is too large and nothing
//! else, and holds no event beyond its bound.
//!
//! The file is taken as it is: the whole sidecar would take many times as long to build.
#![no_main]
#![allow(dead_code, reason = "the target uses a part of the file")]

#[path = "../../sidecar/src/upstream/mcp/http/sse.rs"]
mod sse;

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use sse::{Ends, Event, Events, TooLarge};

const LIMIT: usize = 512;

#[derive(Debug, Default, PartialEq)]
struct Read {
    events: Vec<Event>,
    left_out: Vec<Ends>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

fn read<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> Read {
    let (mut events, mut read, mut is_skipping) = (Events::new(LIMIT), Read::default(), false);
    for chunk in chunks {
        events.push(chunk);
        loop {
            if is_skipping {
                let Some(ends) = events.skip() else { break };
                read.left_out.push(ends);
                is_skipping = false;
            }
            match events.next_event() {
                Ok(Some(event)) => read.events.push(event),
                Ok(None) => break,
                Err(TooLarge) => is_skipping = true,
            }
        }
    }
    read.last_id = events.last_id().map(str::to_owned);
    read.retry = events.retry();
    read
}

/// What a plain reading of the specification finds, where nothing is too large.
fn reference(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut found, mut data) = (Vec::new(), Vec::new());
    // What stands behind the last line end is no line yet.
    for line in text.rsplit_once('\n').map_or("", |(whole, _)| whole).split('\n') {
        if line.is_empty() {
            let event = std::mem::take(&mut data).join("\n");
            found.extend((!event.is_empty()).then_some(event));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            data.push(value.strip_prefix(' ').unwrap_or(value).to_owned());
        }
    }
    found
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let whole = read(std::iter::once(bytes));
    assert_eq!(read(bytes.chunks(usize::from(cut).max(1))), whole);
    assert_eq!(read(bytes.chunks(1)), whole);
    assert!(whole.events.iter().all(|event| event.data.len() <= LIMIT));
    if bytes.len() <= LIMIT {
        assert!(whole.left_out.is_empty(), "nothing is too large");
        if let Ok(text) = std::str::from_utf8(bytes) {
            let found = whole
                .events
                .iter()
                .map(|event| String::from_utf8_lossy(&event.data));
            assert!(found.eq(reference(text)), "{whole:?}");
        }
    }
});
