-- Times are Unix microseconds by the database's clock. Lists are JSON arrays of strings. Fingerprints and hashes are 32 bytes.
-- Names and ids are ordered and searched by their bytes, whatever the database's locale.

-- Which database this is; another one, or another timeline of it, begins a generation.
CREATE TABLE generation (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    generation BIGINT NOT NULL,
    system_identifier TEXT NOT NULL,
    timeline TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at BIGINT NOT NULL
);

-- The order of desired state: locked by every change.
CREATE TABLE revision (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL
);

CREATE TABLE changes (
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    position BIGINT NOT NULL,
    at BIGINT NOT NULL,
    made_by TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    -- NULL: removed.
    body BYTEA,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    agents_before TEXT NOT NULL,
    namespaces_before TEXT NOT NULL,
    PRIMARY KEY (generation, number, position)
);

CREATE TABLE policies (
    name TEXT COLLATE "C" PRIMARY KEY,
    text TEXT NOT NULL,
    body BYTEA NOT NULL,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_file TEXT NOT NULL,
    origin_index BIGINT NOT NULL,
    problem TEXT,
    version BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);

CREATE TABLE policy_versions (
    name TEXT COLLATE "C" NOT NULL,
    text TEXT NOT NULL,
    body BYTEA NOT NULL,
    agents TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_file TEXT NOT NULL,
    origin_index BIGINT NOT NULL,
    problem TEXT,
    version BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    deleted BOOLEAN NOT NULL,
    PRIMARY KEY (name, version)
);

-- What each sidecar sees of its upstreams now.
CREATE TABLE tools (
    sidecar TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    PRIMARY KEY (sidecar, upstream, name)
);
CREATE INDEX tools_by_name ON tools (namespace, name);

CREATE TABLE tool_versions (
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    declared BYTEA NOT NULL,
    first_seen_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, name, fingerprint)
);

CREATE TABLE pins (
    namespace TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    accepted_at BIGINT NOT NULL,
    accepted_by TEXT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (namespace, tool)
);

-- Upstreams whose first use is over.
CREATE TABLE pinned_upstreams (
    namespace TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, upstream)
);

CREATE TABLE grants (
    id TEXT COLLATE "C" PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL,
    agent TEXT NOT NULL,
    tools TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    reason TEXT,
    granted_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    suspended_at BIGINT,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL
);

CREATE TABLE settings (
    key TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL,
    version BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);

-- Positions of feeds: taken under the row's lock, so that they commit in order and without gaps.
CREATE TABLE sequences (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE stops (
    id TEXT COLLATE "C" PRIMARY KEY,
    sequence BIGINT NOT NULL,
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    agent TEXT,
    person TEXT,
    in_namespace TEXT,
    reason TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    lifted_at BIGINT,
    lifted_by TEXT
);
CREATE INDEX stops_that_hold ON stops (sequence) WHERE lifted_at IS NULL;

CREATE TABLE approvals (
    id TEXT COLLATE "C" PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL,
    sidecar TEXT COLLATE "C" NOT NULL,
    call_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    arguments_digest BYTEA NOT NULL,
    digest_key_id TEXT NOT NULL,
    session TEXT NOT NULL,
    -- SHA-256 over namespace and binding: equal ones are the same question.
    binding BYTEA NOT NULL,
    params BYTEA NOT NULL,
    classification BYTEA NOT NULL,
    policy_rule TEXT NOT NULL,
    rule_index BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    message TEXT NOT NULL,
    injection_risk BOOLEAN NOT NULL,
    resources TEXT NOT NULL,
    identity TEXT NOT NULL,
    floors TEXT NOT NULL,
    timeout_us BIGINT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    resolved_at BIGINT,
    resolved_by TEXT NOT NULL,
    resolved_via TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    confidence DOUBLE PRECISION,
    consumed_at BIGINT,
    consumed_by TEXT NOT NULL,
    -- What the claim was checked against.
    claim_generation BIGINT NOT NULL DEFAULT 0,
    claim_number BIGINT NOT NULL DEFAULT 0,
    claim_stops BIGINT NOT NULL DEFAULT 0,
    cursor BIGINT NOT NULL
);
CREATE UNIQUE INDEX approvals_open ON approvals (binding)
    WHERE status = 'pending' OR (status = 'approved' AND consumed_at IS NULL);
CREATE INDEX approvals_due ON approvals (expires_at)
    WHERE status = 'pending' OR (status = 'approved' AND consumed_at IS NULL);
CREATE INDEX approvals_newest ON approvals (created_at, id);

CREATE TABLE approval_events (
    cursor BIGINT PRIMARY KEY,
    approval TEXT NOT NULL,
    status TEXT NOT NULL,
    consumed BOOLEAN NOT NULL,
    at BIGINT NOT NULL
);

CREATE TABLE join_tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    label TEXT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    agents TEXT NOT NULL,
    upstreams TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    uses_left BIGINT,
    revoked_at BIGINT
);

CREATE TABLE sidecars (
    id TEXT COLLATE "C" PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    labels TEXT NOT NULL,
    version TEXT NOT NULL,
    contract BIGINT NOT NULL,
    agents TEXT NOT NULL,
    upstreams TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    renewal_hash BYTEA NOT NULL,
    enrolled_at BIGINT NOT NULL,
    revoked_at BIGINT,
    revoked_by TEXT
);

CREATE TABLE sidecar_events (
    sequence BIGINT PRIMARY KEY,
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    revoked BOOLEAN NOT NULL
);

-- The newest heartbeat of each epoch.
CREATE TABLE heartbeats (
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    lease_age_ms BIGINT NOT NULL,
    high_water BIGINT NOT NULL,
    open_intents BIGINT NOT NULL,
    stop_sequence BIGINT NOT NULL,
    PRIMARY KEY (sidecar, epoch)
);

-- The newest ACK or NACK of each sidecar.
CREATE TABLE acks (
    sidecar TEXT COLLATE "C" PRIMARY KEY,
    epoch BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    apply_us BIGINT NOT NULL,
    rejected TEXT NOT NULL,
    at BIGINT NOT NULL
);

-- How far the records of each epoch have come: locked by ingest.
CREATE TABLE epochs (
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    committed BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    -- Link of the last source record.
    source_hash BYTEA NOT NULL,
    closed BOOLEAN NOT NULL,
    PRIMARY KEY (sidecar, epoch)
);
CREATE INDEX epochs_open ON epochs (sidecar) WHERE NOT closed OR settled < committed;

-- Up to which number an epoch was in the chain at which seq, since the last checkpoint.
CREATE TABLE ingest_marks (
    generation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (generation, seq, sidecar, epoch)
);

CREATE TABLE gaps (
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    first_n BIGINT NOT NULL,
    last_n BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (sidecar, epoch, first_n)
);

CREATE TABLE chain_head (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    generation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash BYTEA NOT NULL
);

-- stored_at is the commit's time, so that dropping an old partition drops a closed range of seq.
CREATE TABLE records (
    generation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    stored_at BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    time BIGINT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    sidecar TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    n BIGINT NOT NULL,
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    session TEXT NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    risk TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    header TEXT NOT NULL,
    payload TEXT,
    hash BYTEA NOT NULL,
    mac BYTEA,
    key_id TEXT NOT NULL,
    PRIMARY KEY (generation, seq, stored_at)
) PARTITION BY RANGE (stored_at);
CREATE TABLE records_rest PARTITION OF records DEFAULT;
CREATE INDEX records_by_id ON records (id);
CREATE INDEX records_by_trace ON records (trace_id) WHERE trace_id <> '';
CREATE INDEX records_by_session ON records (session) WHERE session <> '';

CREATE TABLE checkpoints (
    generation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    time BIGINT NOT NULL,
    text TEXT NOT NULL,
    signature BYTEA NOT NULL,
    key_id TEXT NOT NULL,
    PRIMARY KEY (generation, seq, time)
);

CREATE TABLE keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    purpose TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    public BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT
);
CREATE UNIQUE INDEX keys_active ON keys (purpose) WHERE retired_at IS NULL;

CREATE TABLE counters (
    policy TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (policy, agent, kind)
);

CREATE TABLE quota_leases (
    policy TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    lease_id TEXT NOT NULL,
    granted BIGINT NOT NULL,
    returned BOOLEAN NOT NULL,
    taken_at BIGINT NOT NULL,
    PRIMARY KEY (policy, agent, kind, lease_id)
);
CREATE INDEX quota_leases_by_time ON quota_leases (policy, agent, kind, taken_at);

INSERT INTO generation VALUES (1, 1, '', '', 'installed', 0);
INSERT INTO revision VALUES (1, 1, 0);
INSERT INTO sequences VALUES ('stops', 0), ('approvals', 0), ('sidecars', 0);
INSERT INTO chain_head VALUES (1, 1, 0, decode(repeat('00', 32), 'hex'));
