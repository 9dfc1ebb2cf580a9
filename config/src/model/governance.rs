//! What the fleet decides.

use std::time::Duration;

use crate::schema::{Keys, Seconds, Size, Whole, choice, section};

section! {
    /// How tools are named towards agents.
    Expose as "expose" {
        /// What stands between a server's name and its tool's. Both are understood in calls.
        separator: Separator = ".",
        /// Whether tools carry their server's name.
        prefix: Prefix = "always",
    }
}

choice! {
    /// What stands between a server's name and its tool's.
    Separator {
        /// `files.read`
        Dot = ".",
        /// `files__read`, for hosts that allow no dots.
        Underscores = "__",
    }
}

choice! {
    /// Whether tools carry their server's name.
    Prefix {
        /// Always.
        Always = "always",
        /// Never: names pass unchanged. Needs exactly one server.
        Never = "never",
    }
}

section! {
    /// How pinning begins.
    Pins as "pins" {
        /// What happens with the tools of a server that is seen for the first time.
        first_use: FirstUse = "trust",
    }
}

choice! {
    /// What happens with the tools of a server that is seen for the first time.
    FirstUse {
        /// They are pinned as they are.
        Trust = "trust",
        /// They are held back until somebody accepts them.
        Review = "review",
    }
}

section! {
    /// Questions to people, and how long things wait for the answer.
    Approval as "approval" {
        /// How long a question stays open; then it is a denial.
        timeout_seconds: Duration as Seconds<1, 86400> = "300",
        /// How long an approved call may wait to be run.
        ttl_seconds: Duration as Seconds<1, 86400> = "300",
        /// How long `POST /tool/{name}` holds before it answers 202.
        rest_hold_seconds: Duration as Seconds<0, 600> = "60",
        /// How long an MCP call waits before it answers that it needs approval.
        wait_seconds: Duration as Seconds<0, 10> = "0",
        /// How many questions of one agent in one namespace may be open at once; a call that would ask one more is denied.
        max_pending: u32 as Whole<u32, 1, 10000> = "100",
        /// Where questions go.
        channel: ApprovalChannel = "queue",
    }
    planned { "notify_url", "callback_hosts", "required" }
}

choice! {
    /// Where questions go.
    ApprovalChannel {
        /// To the queue that operators read.
        Queue = "queue",
    }
    planned { "tty", "tty-fallback" }
}

section! {
    /// Rights for a while.
    Grants as "grants" {
        /// The longest that may be granted.
        max_duration: Duration = "24h",
    }
}

section! {
    /// Bounds of what is accepted; beyond them a request is refused before it is evaluated.
    Limits as "limits" {
        /// Arguments of one call.
        argument_bytes: usize as Size<usize> = "4MiB",
        /// One message, in either direction.
        message_bytes: usize as Size<usize> = "16MiB",
        /// Nesting of arguments.
        depth: usize as Whole<usize, 1, 64> = "64",
    }
    check arguments_fit_messages
}

fn arguments_fit_messages(limits: &Limits, keys: &Keys<'_, '_>) {
    if limits.argument_bytes > limits.message_bytes {
        let message = "limits.argument_bytes must not be larger than limits.message_bytes".to_owned();
        keys.problem(Some("argument_bytes"), message);
    }
}

section! {
    /// The same call again and again within 10 seconds is denied.
    Loop as "loop" {
        /// How often it may run. Default: 20 for plain reads, 3 for everything else.
        max: Option<u32> as Option<Whole<u32, 1, 10000>>,
    }
}

section! {
    /// What records hold, and how they are sealed.
    Traces as "traces" {
        /// More keys and paths (patterns) whose values are masked before they leave the sidecar, beside the
        /// built-in ones for passwords, tokens and keys.
        redact: Vec<String>,
        /// What is kept of a call's arguments.
        params: Params = "redacted",
        /// How often the chain's head is signed.
        checkpoint_seconds: Duration as Seconds<1, 3600> = "10",
    }
    planned { "retention_days" }
}

choice! {
    /// What is kept of a call's arguments.
    Params {
        /// Everything, secrets masked.
        Redacted = "redacted",
        /// Everything.
        Full = "full",
        /// A digest only.
        Digest = "digest",
    }
}
