//! Reading a configuration never panics, and never refuses it without saying why.
#![no_main]

use config::{Config, Environment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Err(problems) = Config::parse("fuzz.yaml", text, &Environment::default()) else {
        return;
    };
    assert!(!problems.is_empty());
    for problem in problems {
        let text = problem.to_string();
        assert!(!text.contains("for a reason that no check found"), "{text}");
    }
});
