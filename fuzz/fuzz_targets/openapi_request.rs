//! Whatever the arguments of a call are, its request goes to the path and the parameters that the document names.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz::openapi::request(bytes));
