-- The newest no to a call, and the questions of an agent that wait, are looked for whenever a question is opened.
CREATE INDEX approvals_denied ON approvals (binding, resolved_at) WHERE status = 'denied';
CREATE INDEX approvals_pending ON approvals (namespace, agent) WHERE status = 'pending';
