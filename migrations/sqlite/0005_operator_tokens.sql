-- Tokens of operators, by their hashes. An empty list of namespaces is all of them.
CREATE TABLE operator_tokens (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
);
