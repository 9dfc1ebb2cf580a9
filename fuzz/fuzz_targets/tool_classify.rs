//! A classification never contradicts itself, whatever a server declares and an agent sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz::classify::check(bytes));
