//! The tools that are served here, with their classification, fingerprint and pin status.
