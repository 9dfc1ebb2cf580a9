//! Named points at which a test lets its own process die, as `kill -9` or a power failure would do it there.
//!
//! With the feature `crash-points`, the variable `TOOLGATE_CRASH_AT=name` (or `name:3`) makes the process end itself by SIGKILL when it
//! passes that point (for the third time). Without the feature, which is how programs are delivered, the points are nothing.

/// A place in the code at which a process can be told to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Sidecar: the intent of a call is in the spool, the call is not forwarded yet.
    IntentKept,
    /// Sidecar: an approval is claimed for a call, the call is not forwarded yet.
    ApprovalClaimed,
    /// Control plane: a batch of records is written, its transaction is not committed.
    BatchWritten,
    /// Control plane: a batch of records is committed, nobody has been told.
    BatchCommitted,
}

impl Point {
    /// As it is written in `TOOLGATE_CRASH_AT`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntentKept => "intent-kept",
            Self::ApprovalClaimed => "approval-claimed",
            Self::BatchWritten => "batch-written",
            Self::BatchCommitted => "batch-committed",
        }
    }
}

/// Says that the process is at `point`. It does not return when the process is to die there.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn passes(_point: Point) {}

#[cfg(feature = "crash-points")]
pub use armed::passes;

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::Point;

    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

    /// Where to die.
    #[derive(Debug)]
    struct Plan {
        point: String,
        passes_left: AtomicU64,
    }

    impl Plan {
        fn parse(text: &str) -> Self {
            let (point, passes) = text.split_once(':').unwrap_or((text, "1"));
            Self {
                point: point.to_owned(),
                passes_left: AtomicU64::new(passes.parse().unwrap_or(1)),
            }
        }

        /// Counts a passage; says whether it is the last.
        fn ends_at(&self, point: Point) -> bool {
            self.point == point.name() && self.passes_left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    /// Says that the process is at `point`. It does not return when the process is to die there.
    pub fn passes(point: Point) {
        let plan = PLAN.get_or_init(|| {
            std::env::var("TOOLGATE_CRASH_AT")
                .ok()
                .map(|text| Plan::parse(&text))
        });
        if plan.as_ref().is_some_and(|plan| plan.ends_at(point)) {
            tracing::error!(point = point.name(), "dies here, as TOOLGATE_CRASH_AT says");
            if let Err(error) = kill(Pid::this(), Signal::SIGKILL) {
                tracing::error!(%error, "could not die");
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_plan_ends_at_the_given_passage_of_its_own_point() {
            let plan = Plan::parse("batch-written:2");
            let passages = [
                Point::BatchWritten,
                Point::IntentKept,
                Point::BatchWritten,
                Point::BatchWritten,
            ];
            assert_eq!(
                passages.map(|point| plan.ends_at(point)),
                [false, false, true, false]
            );
            assert!(Plan::parse("intent-kept").ends_at(Point::IntentKept));
        }
    }
}
