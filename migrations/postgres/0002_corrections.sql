-- What operators corrected about tools. Builds before this one neither read nor write it.
CREATE TABLE corrections (
    namespace TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    -- Of the declaration that the operator saw.
    fingerprint BYTEA NOT NULL,
    -- What the operator said, as JSON.
    said TEXT NOT NULL,
    -- What sidecars apply, as JSON.
    sent TEXT NOT NULL,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (namespace, tool)
);
