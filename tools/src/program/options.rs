//! The options of an argument vector, and whether they are among the allowed ones.

use super::ArgumentError;

/// The arguments have no option but these. What follows a `--` that cannot be the value of an option is no option.
///
/// An allowed `--name` covers `--name=value`; an allowed `-n` covers a value that is attached to it, as in `-nprod`.
pub(super) fn only(allowed: &[String], arguments: &[String]) -> Result<(), ArgumentError> {
    let mut may_be_value = false;
    for argument in arguments {
        if argument == "--" && !may_be_value {
            return Ok(());
        }
        if !is_option(argument) {
            may_be_value = false;
            continue;
        }
        if !allowed.iter().any(|option| covers(option, argument)) {
            let option = name(argument);
            return Err(ArgumentError::Option {
                option: option.chars().take(64).collect(),
                allowed: if allowed.is_empty() {
                    "none".to_owned()
                } else {
                    allowed.join(", ")
                },
            });
        }
        may_be_value = argument != "--" && takes_next(argument);
    }
    Ok(())
}

/// Whether a program takes the argument for an option, before any `--`.
pub(super) fn is_option(argument: &str) -> bool {
    argument.len() > 1 && argument.starts_with('-') && argument != "--"
}

/// Whether the argument after this option may be its value.
pub(super) fn takes_next(option: &str) -> bool {
    !option.contains('=')
}

/// The option itself, without a value after `=`.
fn name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

fn covers(allowed: &str, argument: &str) -> bool {
    if name(argument) == allowed {
        return true;
    }
    let is_short = allowed.len() == 2 && allowed.starts_with('-') && allowed != "--";
    is_short && argument.starts_with(allowed)
}
