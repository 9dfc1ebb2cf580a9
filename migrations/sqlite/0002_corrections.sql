-- What operators corrected about tools. Builds before this one neither read nor write it.
CREATE TABLE corrections (
    namespace TEXT NOT NULL,
    tool TEXT NOT NULL,
    upstream TEXT NOT NULL,
    -- Of the declaration that the operator saw.
    fingerprint BLOB NOT NULL,
    -- What the operator said, as JSON.
    said TEXT NOT NULL,
    -- What sidecars apply, as JSON.
    sent TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (namespace, tool)
);
