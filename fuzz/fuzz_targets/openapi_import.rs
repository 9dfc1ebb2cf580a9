//! Importing a document never panics, stays in bounds, and makes only tools that can be served.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz::openapi::import(bytes));
