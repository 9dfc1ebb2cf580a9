//! A field path is refused with a reason, or means one way into the arguments: it is written back as it was read, survives being
//! sent, and a test on it decides about any arguments without panicking.
#![no_main]

use fuzz::field_path::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check(bytes));
