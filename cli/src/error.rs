//! What a command can end with, and the exit code that says so.

use std::process::ExitCode;

use policy::yaml::Problem;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The answer is no: nothing went wrong, but a script must notice.
    #[error("{0}")]
    Negative(String),
    /// The command line or a file is wrong.
    #[error("{0}")]
    Usage(String),
    /// A configuration or a policy is wrong; every problem at once.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
    /// Nobody answers.
    #[error(
        "{what} cannot be reached at {url}: {cause}; is it running? (`toolgate up --config FILE` starts one, --url or TOOLGATE_CONTROL_URL names another)"
    )]
    Unreachable {
        /// What was asked.
        what: &'static str,
        /// Where.
        url: String,
        /// What the network said.
        cause: String,
    },
    /// No `toolgate up` has run here.
    #[error("{0}")]
    NotUp(String),
    /// The credential was refused.
    #[error(
        "{url} refused the credential: {detail}; give the operator token by --token or TOOLGATE_TOKEN (`toolgate up` keeps it in <data-dir>/admin-token)"
    )]
    Refused {
        /// Who refused.
        url: String,
        /// Its words.
        detail: String,
    },
    /// The server answered with a problem.
    #[error("{status} {detail}")]
    Problem {
        /// HTTP status.
        status: u16,
        /// The problem's detail.
        detail: String,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

fn list(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl CliError {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Negative(_) => 1,
            Self::Usage(_) | Self::Problems(_) => 2,
            Self::Problem {
                status: 400 | 422, ..
            } => 2,
            Self::Unreachable { .. } | Self::NotUp(_) => 3,
            Self::Refused { .. } => 4,
            Self::Problem { .. } | Self::Failed(_) => 5,
        })
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
