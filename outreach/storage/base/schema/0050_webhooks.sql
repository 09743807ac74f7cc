-- Endpoints of applications, and how far the deliveries of events have come to each of them. The types are JSON.
CREATE TABLE webhooks (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    url {text} NOT NULL,
    description {text} NOT NULL,
    types {text} NOT NULL,
    payload {text} NOT NULL CHECK (payload IN ('thin', 'full')),
    concurrency {integer} NOT NULL,
    state {text} NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    reason {text},
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX webhooks_of_workspace ON webhooks (workspace_id);

CREATE INDEX webhooks_in_use ON webhooks (state, id) WHERE removed_at IS NULL;

CREATE TABLE webhook_cursors (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    sealed {text} NOT NULL,
    position {integer} NOT NULL,
    gap_until {integer} NOT NULL,
    failures {integer} NOT NULL,
    failing_since {text},
    probe_at {text},
    holder {text},
    held_until {text},
    updated_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id)
) {strict};

CREATE TABLE webhook_holds (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    number {integer} NOT NULL,
    key {text} NOT NULL,
    attempts {integer} NOT NULL,
    next_at {text} NOT NULL,
    first_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, number)
) {strict};

CREATE TABLE webhook_attempts (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    number {integer} NOT NULL,
    type {text} NOT NULL,
    at {text} NOT NULL,
    duration_ms {integer} NOT NULL,
    status {integer},
    error {text},
    answer {text} NOT NULL
) {strict};

CREATE INDEX webhook_attempts_of_webhook ON webhook_attempts (workspace_id, webhook_id, id);

-- Events of an endpoint: that it was disabled.
ALTER TABLE trail ADD COLUMN webhook_id {text};
