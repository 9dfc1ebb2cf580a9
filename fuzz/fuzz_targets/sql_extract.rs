//! Reading SQL never panics, and a further statement never makes a text milder.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz::extract::sql(bytes));
