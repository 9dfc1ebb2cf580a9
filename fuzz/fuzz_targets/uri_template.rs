//! Filling URI templates never panics, and no value forges a part of the URI.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz::extract::template(bytes));
