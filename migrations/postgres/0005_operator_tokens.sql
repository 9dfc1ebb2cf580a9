-- Tokens of operators, by their hashes. An empty list of namespaces is all of them.
CREATE TABLE operator_tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT
);
