//! Bounds and duplicate keys: what cannot be read in exactly one way is refused before anything looks at it.

use chain::vocabulary::Reason;
use tools::json::Node;

use super::call::{Arguments, Unreadable};
use super::refusal::Refusal;

/// The arguments, when they are acceptable.
pub(super) fn arguments<'d>(arguments: &Arguments<'d>) -> Result<Option<Node<'d>>, Refusal> {
    match arguments {
        Arguments::Absent => Ok(None),
        Arguments::Object(node) => Ok(Some(*node)),
        Arguments::Unreadable(why) => {
            let reason = if why.is_size() {
                Reason::TooLarge
            } else if why.is_duplicate_key() {
                Reason::DuplicateKeys
            } else if matches!(why, Unreadable::NoRoomForTask { .. }) {
                Reason::RateLimited
            } else {
                Reason::Malformed
            };
            Err(Refusal::new(reason, why.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tools::json::{Document, Limits};

    use super::*;

    fn refused(text: &[u8], limits: Limits) -> Reason {
        let error = Document::parse(text, limits).unwrap_err();
        arguments(&Arguments::Unreadable(Unreadable::Json(error)))
            .unwrap_err()
            .reason
    }

    #[test]
    fn what_cannot_be_read_in_one_way_is_refused_with_its_reason() {
        let deep = "[".repeat(70);
        assert_eq!(
            refused(br#"{"a":1,"\u0061":2}"#, Limits::ARGUMENTS),
            Reason::DuplicateKeys
        );
        assert_eq!(refused(deep.as_bytes(), Limits::ARGUMENTS), Reason::TooLarge);
        assert_eq!(refused(b"{\"a\":\"\xff\"}", Limits::ARGUMENTS), Reason::Malformed);
        let small = Limits {
            max_bytes: 4,
            max_depth: 64,
        };
        assert_eq!(refused(b"{\"a\":1}", small), Reason::TooLarge);
        let no_object = arguments(&Arguments::Unreadable(Unreadable::NoObject));
        assert_eq!(no_object.unwrap_err().reason, Reason::Malformed);
        let no_room = arguments(&Arguments::Unreadable(Unreadable::NoRoomForTask { limit: 3 }));
        assert_eq!(no_room.unwrap_err().reason, Reason::RateLimited);
    }
}
