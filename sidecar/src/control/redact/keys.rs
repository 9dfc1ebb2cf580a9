//! Keys that name secrets.

/// Words that name a secret wherever they stand in a key, spelled without separators.
const PARTS: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "sshkey",
    "connectionstring",
    "setcookie",
    "bearer",
];

/// Keys that name a secret as a whole.
const WHOLE: [&str; 10] = [
    "pwd", "pass", "pin", "otp", "auth", "cookie", "cookies", "jwt", "cvv", "cvc",
];

/// The key in lower case without separators.
fn squeezed(key: &str) -> String {
    key.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Whether the key's value is a secret.
pub(super) fn names_secret(key: &str) -> bool {
    // Most keys are short and have nothing of it: one pass, no search.
    let key = squeezed(key);
    PARTS.iter().any(|part| key.contains(part)) || WHOLE.contains(&key.as_str())
}

/// Whether a number under this key counts something (`max_tokens`) instead of being a secret itself.
pub(super) fn names_count(key: &str) -> bool {
    let key = squeezed(key);
    key.ends_with("tokens") || key.ends_with("count") || key.ends_with("length") || key.starts_with("max")
}
