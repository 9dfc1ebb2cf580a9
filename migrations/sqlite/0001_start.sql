-- Times are Unix microseconds by the database's clock. Lists are JSON arrays of strings. Fingerprints and hashes are 32 bytes.

-- Which database this is; another one, or another timeline of it, begins a generation.
CREATE TABLE generation (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    system_identifier TEXT NOT NULL,
    timeline TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at INTEGER NOT NULL
);

-- The order of desired state: locked by every change.
CREATE TABLE revision (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL
);

CREATE TABLE changes (
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    -- NULL: removed.
    body BLOB,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    agents_before TEXT NOT NULL,
    namespaces_before TEXT NOT NULL,
    PRIMARY KEY (generation, number, position)
);

CREATE TABLE policies (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    body BLOB NOT NULL,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_file TEXT NOT NULL,
    origin_index INTEGER NOT NULL,
    problem TEXT,
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL
);

CREATE TABLE policy_versions (
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    body BLOB NOT NULL,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_file TEXT NOT NULL,
    origin_index INTEGER NOT NULL,
    problem TEXT,
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    deleted BOOLEAN NOT NULL,
    PRIMARY KEY (name, version)
);

-- What each sidecar sees of its upstreams now.
CREATE TABLE tools (
    sidecar TEXT NOT NULL,
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (sidecar, upstream, name)
);
CREATE INDEX tools_by_name ON tools (namespace, name);

CREATE TABLE tool_versions (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    upstream TEXT NOT NULL,
    kind TEXT NOT NULL,
    declared BLOB NOT NULL,
    first_seen_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name, fingerprint)
);

CREATE TABLE pins (
    namespace TEXT NOT NULL,
    tool TEXT NOT NULL,
    upstream TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    accepted_at INTEGER NOT NULL,
    accepted_by TEXT NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (namespace, tool)
);

-- Upstreams whose first use is over.
CREATE TABLE pinned_upstreams (
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, upstream)
);

CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    agent TEXT NOT NULL,
    tools TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    reason TEXT,
    granted_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    suspended_at INTEGER,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL
);

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL
);

-- Positions of feeds: taken under the row's lock, so that they commit in order and without gaps.
CREATE TABLE sequences (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);

CREATE TABLE stops (
    id TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    agent TEXT,
    person TEXT,
    in_namespace TEXT,
    reason TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    lifted_at INTEGER,
    lifted_by TEXT
);
CREATE INDEX stops_that_hold ON stops (sequence) WHERE lifted_at IS NULL;

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    sidecar TEXT NOT NULL,
    call_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    tool TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    arguments_digest BLOB NOT NULL,
    digest_key_id TEXT NOT NULL,
    session TEXT NOT NULL,
    -- SHA-256 over namespace and binding: equal ones are the same question.
    binding BLOB NOT NULL,
    params BLOB NOT NULL,
    classification BLOB NOT NULL,
    policy_rule TEXT NOT NULL,
    rule_index INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    injection_risk BOOLEAN NOT NULL,
    resources TEXT NOT NULL,
    identity TEXT NOT NULL,
    floors TEXT NOT NULL,
    timeout_us INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    resolved_at INTEGER,
    resolved_by TEXT NOT NULL,
    resolved_via TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    confidence REAL,
    consumed_at INTEGER,
    consumed_by TEXT NOT NULL,
    -- What the claim was checked against.
    claim_generation INTEGER NOT NULL DEFAULT 0,
    claim_number INTEGER NOT NULL DEFAULT 0,
    claim_stops INTEGER NOT NULL DEFAULT 0,
    cursor INTEGER NOT NULL
);
CREATE UNIQUE INDEX approvals_open ON approvals (binding)
    WHERE status = 'pending' OR (status = 'approved' AND consumed_at IS NULL);
CREATE INDEX approvals_due ON approvals (expires_at)
    WHERE status = 'pending' OR (status = 'approved' AND consumed_at IS NULL);
CREATE INDEX approvals_newest ON approvals (created_at, id);

CREATE TABLE approval_events (
    cursor INTEGER PRIMARY KEY,
    approval TEXT NOT NULL,
    status TEXT NOT NULL,
    consumed BOOLEAN NOT NULL,
    at INTEGER NOT NULL
);

CREATE TABLE join_tokens (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    label TEXT NOT NULL,
    namespace TEXT NOT NULL,
    agents TEXT NOT NULL,
    upstreams TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    uses_left INTEGER,
    revoked_at INTEGER
);

CREATE TABLE sidecars (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    version TEXT NOT NULL,
    contract INTEGER NOT NULL,
    agents TEXT NOT NULL,
    upstreams TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    renewal_hash BLOB NOT NULL,
    enrolled_at INTEGER NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT
);

CREATE TABLE sidecar_events (
    sequence INTEGER PRIMARY KEY,
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    revoked BOOLEAN NOT NULL
);

-- The newest heartbeat of each epoch.
CREATE TABLE heartbeats (
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    lease_age_ms INTEGER NOT NULL,
    high_water INTEGER NOT NULL,
    open_intents INTEGER NOT NULL,
    stop_sequence INTEGER NOT NULL,
    PRIMARY KEY (sidecar, epoch)
);

-- The newest ACK or NACK of each sidecar.
CREATE TABLE acks (
    sidecar TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    apply_us INTEGER NOT NULL,
    rejected TEXT NOT NULL,
    at INTEGER NOT NULL
);

-- How far the records of each epoch have come: locked by ingest.
CREATE TABLE epochs (
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    -- Link of the last source record.
    source_hash BLOB NOT NULL,
    closed BOOLEAN NOT NULL,
    PRIMARY KEY (sidecar, epoch)
);
CREATE INDEX epochs_open ON epochs (sidecar) WHERE NOT closed OR settled < committed;

-- Up to which number an epoch was in the chain at which seq, since the last checkpoint.
CREATE TABLE ingest_marks (
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (generation, seq, sidecar, epoch)
);

CREATE TABLE gaps (
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    first_n INTEGER NOT NULL,
    last_n INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (sidecar, epoch, first_n)
);

CREATE TABLE chain_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE records (
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    sidecar TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    session TEXT NOT NULL,
    tool TEXT NOT NULL,
    upstream TEXT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    risk TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    header TEXT NOT NULL,
    payload TEXT,
    hash BLOB NOT NULL,
    mac BLOB,
    key_id TEXT NOT NULL,
    PRIMARY KEY (generation, seq)
);
CREATE INDEX records_by_id ON records (id);
CREATE INDEX records_by_trace ON records (trace_id) WHERE trace_id <> '';
CREATE INDEX records_by_session ON records (session) WHERE session <> '';

CREATE TABLE checkpoints (
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    time INTEGER NOT NULL,
    text TEXT NOT NULL,
    signature BLOB NOT NULL,
    key_id TEXT NOT NULL,
    PRIMARY KEY (generation, seq, time)
);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    sealed BLOB NOT NULL,
    public BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER
);
CREATE UNIQUE INDEX keys_active ON keys (purpose) WHERE retired_at IS NULL;

CREATE TABLE counters (
    policy TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (policy, agent, kind)
);

CREATE TABLE quota_leases (
    policy TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    lease_id TEXT NOT NULL,
    granted INTEGER NOT NULL,
    returned BOOLEAN NOT NULL,
    taken_at INTEGER NOT NULL,
    PRIMARY KEY (policy, agent, kind, lease_id)
);
CREATE INDEX quota_leases_by_time ON quota_leases (policy, agent, kind, taken_at);

INSERT INTO generation VALUES (1, 1, '', '', 'installed', 0);
INSERT INTO revision VALUES (1, 1, 0);
INSERT INTO sequences VALUES ('stops', 0), ('approvals', 0), ('sidecars', 0);
INSERT INTO chain_head VALUES (1, 1, 0, zeroblob(32));
