//! A token's header and claims are refused, or read as any other reader reads them, with registered claims of the right types.
#![no_main]

use fuzz::token::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check(bytes));
