-- Everything, as SQLite's first migration has it: the same tables and columns, in the schema `outreach`.
--
-- Timestamps are texts in UTC of one width (2026-11-20T16:10:25.000000Z), so that they sort as the moments do. Booleans
-- are 0 and 1. Columns that hold JSON hold it as text, to the letter. Texts sort by their code points (COLLATE "C"),
-- whatever the database's own collation is. Phone numbers named `phone` are E.164.

-- `version` counts the transactions that write in all workspaces, and `writer` names the last one: a row that any other
-- one wrote was restored, or comes by replication.
CREATE TABLE fence (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL,
    writer TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 20);

INSERT INTO fence (id, version, writer) VALUES (1, 0, '');

CREATE TABLE workspaces (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    mode TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    sms_campaigns_enabled BIGINT NOT NULL CHECK (sms_campaigns_enabled IN (0, 1)),
    request_limit BIGINT,
    default_region TEXT COLLATE "C",
    contact_hours BIGINT NOT NULL CHECK (contact_hours IN (0, 1)),
    frequency_cap BIGINT,
    retention_days BIGINT,
    revision BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL
);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    name TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL UNIQUE,
    hint TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    revoked_at TEXT COLLATE "C",
    scopes TEXT COLLATE "C" NOT NULL
);

CREATE INDEX api_keys_of_workspace ON api_keys (workspace_id);

CREATE TABLE agents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    name TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    provider_agent_id TEXT COLLATE "C",
    direction TEXT COLLATE "C" NOT NULL,
    allow_outbound BIGINT NOT NULL CHECK (allow_outbound IN (0, 1)),
    is_active BIGINT NOT NULL CHECK (is_active IN (0, 1)),
    placeholders TEXT COLLATE "C",
    from_number TEXT COLLATE "C",
    voicemail TEXT COLLATE "C",
    voicemail_message TEXT COLLATE "C",
    max_call_seconds BIGINT,
    revision BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    removed_at TEXT COLLATE "C"
);

CREATE INDEX agents_of_workspace ON agents (workspace_id);

CREATE TABLE trunks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    name TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    provider_trunk_id TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    removed_at TEXT COLLATE "C"
);

CREATE INDEX trunks_of_workspace ON trunks (workspace_id);

CREATE TABLE numbers (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    phone TEXT COLLATE "C" NOT NULL,
    carrier TEXT COLLATE "C",
    trunk_id TEXT COLLATE "C" REFERENCES trunks (id),
    rate_per_minute BIGINT,
    created_at TEXT COLLATE "C" NOT NULL,
    UNIQUE (workspace_id, phone)
);

CREATE TABLE flows (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    name TEXT COLLATE "C" NOT NULL,
    steps TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    removed_at TEXT COLLATE "C"
);

CREATE INDEX flows_of_workspace ON flows (workspace_id);

CREATE TABLE sms_settings (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    footer_enabled BIGINT NOT NULL CHECK (footer_enabled IN (0, 1)),
    footer_text TEXT COLLATE "C" NOT NULL,
    max_segments BIGINT NOT NULL,
    retry_enabled BIGINT NOT NULL CHECK (retry_enabled IN (0, 1)),
    retry_max_attempts BIGINT NOT NULL,
    retry_delay_minutes BIGINT NOT NULL,
    custom_variables TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL
);

CREATE TABLE call_settings (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    retry_max_attempts BIGINT NOT NULL,
    retry_delay_minutes BIGINT NOT NULL
);

CREATE TABLE reply_settings (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    stop_text TEXT COLLATE "C" NOT NULL,
    start_text TEXT COLLATE "C" NOT NULL,
    help_text TEXT COLLATE "C" NOT NULL,
    help_when_opted_out BIGINT NOT NULL CHECK (help_when_opted_out IN (0, 1))
);

-- What an SMS segment or a minute of a call costs a workspace, by provider and country, as a JSON array.
CREATE TABLE price_tables (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    currency TEXT COLLATE "C" NOT NULL,
    prices TEXT COLLATE "C" NOT NULL
);

CREATE TABLE unsubscribes (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    phone TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    evidence TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    archived_campaign BIGINT,
    PRIMARY KEY (workspace_id, phone)
);

CREATE INDEX unsubscribes_by_time ON unsubscribes (workspace_id, created_at);

CREATE INDEX unsubscribes_to_hash ON unsubscribes (workspace_id, created_at)
WHERE substr(phone, 1, 1) <> '#' AND scope <> 'held';

-- Numbers of erased people stay on the register as hashes with their workspace's salt; without a row there are none.
CREATE TABLE register_salts (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    salt TEXT COLLATE "C" NOT NULL
);

-- A campaign is known outside by its id; its recipients and dispatches name it by its number, which keeps millions of rows
-- small. While `loading_until` is set nobody sees the campaign.
CREATE TABLE campaigns (
    number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    channel TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    name_folded TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    pause_reason TEXT COLLATE "C",
    agent_id TEXT COLLATE "C" REFERENCES agents (id),
    schedule_type TEXT COLLATE "C" NOT NULL,
    scheduled_start_at TEXT COLLATE "C",
    scheduled_expires_at TEXT COLLATE "C",
    business_hours TEXT COLLATE "C",
    holidays TEXT COLLATE "C",
    batch_concurrency BIGINT NOT NULL,
    trunk_id TEXT COLLATE "C" REFERENCES trunks (id),
    cli_mode TEXT COLLATE "C",
    cli_group TEXT COLLATE "C",
    ivr_enabled BIGINT CHECK (ivr_enabled IN (0, 1)),
    call_screen_enabled BIGINT CHECK (call_screen_enabled IN (0, 1)),
    double_dial BIGINT CHECK (double_dial IN (0, 1)),
    csv_column_headers TEXT COLLATE "C" NOT NULL,
    message_mode TEXT COLLATE "C",
    message_source TEXT COLLATE "C",
    body TEXT COLLATE "C",
    flow_id TEXT COLLATE "C" REFERENCES flows (id),
    carrier TEXT COLLATE "C",
    from_number TEXT COLLATE "C",
    rate_per_minute BIGINT,
    recipients_total BIGINT NOT NULL,
    recipients_pending BIGINT NOT NULL,
    recipients_completed BIGINT NOT NULL,
    recipients_successful BIGINT NOT NULL,
    recipients_failed BIGINT NOT NULL,
    recipients_open BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    started_at TEXT COLLATE "C",
    completed_at TEXT COLLATE "C",
    loading_until TEXT COLLATE "C",
    variable_names TEXT COLLATE "C",
    archived_at TEXT COLLATE "C",
    erased_at TEXT COLLATE "C",
    retry_voicemail INTEGER CHECK (retry_voicemail IN (0, 1))
);

CREATE INDEX campaigns_in_status ON campaigns (status, created_at, id) WHERE loading_until IS NULL;

CREATE INDEX campaigns_loading ON campaigns (loading_until, id) WHERE loading_until IS NOT NULL;

CREATE INDEX campaigns_archived ON campaigns (workspace_id, channel, status) WHERE archived_at IS NOT NULL;

-- What the retention looks for, the oldest first. Rows leave such indexes as they are erased.
CREATE INDEX campaigns_to_erase ON campaigns (workspace_id, completed_at)
WHERE completed_at IS NOT NULL AND erased_at IS NULL AND loading_until IS NULL;

-- What an erased campaign's report keeps, and how far its erasure has come: null when it is done.
CREATE TABLE erasures (
    campaign_number BIGINT PRIMARY KEY REFERENCES campaigns (number),
    figures TEXT COLLATE "C" NOT NULL,
    next_position BIGINT
);

CREATE INDEX erasures_unfinished ON erasures (campaign_number) WHERE next_position IS NOT NULL;

CREATE TABLE archives (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    file TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL
);

CREATE TABLE archived_campaigns (
    campaign_number BIGINT PRIMARY KEY REFERENCES campaigns (number),
    archive_id TEXT COLLATE "C" NOT NULL REFERENCES archives (id),
    state TEXT COLLATE "C" NOT NULL,
    next_position BIGINT NOT NULL,
    figures TEXT COLLATE "C" NOT NULL,
    erase BIGINT NOT NULL DEFAULT 0 CHECK (erase IN (0, 1)),
    begun_at TEXT COLLATE "C" NOT NULL
);

CREATE INDEX archived_campaigns_to_erase ON archived_campaigns (campaign_number) WHERE erase = 1;

CREATE TABLE recipients (
    campaign_number BIGINT NOT NULL,
    position BIGINT NOT NULL,
    phone_number TEXT COLLATE "C" NOT NULL,
    phone TEXT COLLATE "C",
    first_name TEXT COLLATE "C",
    last_name TEXT COLLATE "C",
    email TEXT COLLATE "C",
    company TEXT COLLATE "C",
    custom_variables TEXT COLLATE "C",
    external_id TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    due_at TEXT COLLATE "C",
    step BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    tries BIGINT NOT NULL DEFAULT 0,
    leg BIGINT NOT NULL DEFAULT 1,
    caller_id TEXT COLLATE "C",
    dispatched BIGINT NOT NULL DEFAULT 0 CHECK (dispatched IN (0, 1)),
    successful BIGINT NOT NULL DEFAULT 0 CHECK (successful IN (0, 1)),
    ended_at TEXT COLLATE "C",
    PRIMARY KEY (campaign_number, position)
);

CREATE INDEX recipients_by_phone ON recipients (campaign_number, phone) WHERE phone IS NOT NULL;

CREATE INDEX recipients_without_phone ON recipients (campaign_number, left(phone_number, 200)) WHERE phone IS NULL;

-- The application's own name of a contact. Most campaigns have none.
CREATE INDEX recipients_by_external_id ON recipients (left(external_id, 200), campaign_number)
WHERE external_id IS NOT NULL;

CREATE INDEX recipients_pending ON recipients (campaign_number, position) WHERE status = 'pending';

CREATE INDEX recipients_waiting_due ON recipients (campaign_number, due_at NULLS FIRST, position) WHERE status = 'waiting';

CREATE INDEX recipients_waiting_for ON recipients (campaign_number, reason, due_at NULLS FIRST, position)
WHERE status = 'waiting';

CREATE INDEX recipients_waiting_with ON recipients (phone) WHERE status = 'waiting' AND phone IS NOT NULL;

CREATE TABLE calls (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    campaign_number BIGINT,
    position BIGINT,
    provider TEXT COLLATE "C" NOT NULL,
    provider_call_id TEXT COLLATE "C",
    to_number TEXT COLLATE "C" NOT NULL,
    from_number TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C",
    answered_by TEXT COLLATE "C",
    variables TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    error TEXT COLLATE "C",
    summary TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    dialed_at TEXT COLLATE "C",
    answered_at TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    country TEXT,
    FOREIGN KEY (campaign_number) REFERENCES campaigns (number),
    FOREIGN KEY (campaign_number, position) REFERENCES recipients (campaign_number, position)
);

CREATE INDEX calls_of_recipient ON calls (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_by_provider_id ON calls (workspace_id, left(provider_call_id, 200)) WHERE provider_call_id IS NOT NULL;

CREATE INDEX calls_open ON calls (workspace_id, agent_id, to_number)
WHERE status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed');

-- A workspace's calls are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX calls_of_workspace ON calls (workspace_id, id);

CREATE INDEX calls_to_erase ON calls (workspace_id, ended_at)
WHERE ended_at IS NOT NULL AND to_number <> '' AND campaign_number IS NULL;

CREATE TABLE messages (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    to_number TEXT COLLATE "C" NOT NULL,
    from_number TEXT COLLATE "C",
    carrier TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    segments BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    attempts BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    provider_id TEXT COLLATE "C",
    purpose TEXT COLLATE "C" NOT NULL,
    send_until TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    ended_at TEXT COLLATE "C"
);

CREATE INDEX messages_replies ON messages (workspace_id, to_number, purpose, created_at) WHERE purpose <> 'message';

-- A workspace's messages are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX messages_of_workspace ON messages (workspace_id, id);

CREATE INDEX messages_to_erase ON messages (workspace_id, ended_at) WHERE ended_at IS NOT NULL AND to_number <> '';

-- The ledger: one row is one request to a provider, committed before the provider gets it. `number` is the order of
-- writing.
CREATE TABLE dispatches (
    number BIGINT GENERATED BY DEFAULT AS IDENTITY,
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    channel TEXT COLLATE "C" NOT NULL,
    campaign_number BIGINT,
    position BIGINT,
    message_id TEXT COLLATE "C" REFERENCES messages (id),
    call_id TEXT COLLATE "C" REFERENCES calls (id),
    step BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    leg BIGINT NOT NULL,
    try_number BIGINT NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    from_number TEXT COLLATE "C",
    to_number TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C",
    segments BIGINT,
    state TEXT COLLATE "C" NOT NULL,
    provider_id TEXT COLLATE "C",
    report TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    error_message TEXT COLLATE "C",
    slot_at TEXT COLLATE "C" NOT NULL,
    valid_until TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    settled_at TEXT COLLATE "C",
    country TEXT,
    CHECK ((campaign_number IS NULL) = (position IS NULL)),
    FOREIGN KEY (campaign_number) REFERENCES campaigns (number),
    FOREIGN KEY (campaign_number, position) REFERENCES recipients (campaign_number, position)
);

-- At most one request whose outcome is not known: these three are the delivery contract, not a speed-up.
CREATE UNIQUE INDEX dispatches_unsettled_of_recipient ON dispatches (campaign_number, position, step)
WHERE state IN ('dispatching', 'unknown') AND campaign_number IS NOT NULL;

CREATE UNIQUE INDEX dispatches_unsettled_of_message ON dispatches (message_id)
WHERE state IN ('dispatching', 'unknown') AND message_id IS NOT NULL;

CREATE UNIQUE INDEX dispatches_unsettled_of_call ON dispatches (call_id)
WHERE state IN ('dispatching', 'unknown') AND call_id IS NOT NULL;

CREATE INDEX dispatches_of_recipient ON dispatches (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX dispatches_of_message ON dispatches (message_id) WHERE message_id IS NOT NULL;

CREATE INDEX dispatches_of_call ON dispatches (call_id) WHERE call_id IS NOT NULL;

-- An index takes no more than 2,700 bytes of a row, and what providers and contacts write may be longer.
CREATE INDEX dispatches_by_provider_id ON dispatches (left(provider_id, 200)) WHERE provider_id IS NOT NULL;

CREATE TABLE inbound_messages (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    from_number TEXT COLLATE "C" NOT NULL,
    to_number TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C",
    provider_id TEXT COLLATE "C",
    keyword TEXT COLLATE "C",
    written_at TEXT COLLATE "C" NOT NULL,
    received_at TEXT COLLATE "C" NOT NULL,
    unclear BIGINT NOT NULL DEFAULT 0 CHECK (unclear IN (0, 1)),
    archived_campaign BIGINT,
    media TEXT NOT NULL DEFAULT '[]'
);

CREATE UNIQUE INDEX inbound_messages_by_provider_id ON inbound_messages (workspace_id, provider, md5(provider_id))
WHERE provider_id IS NOT NULL;

CREATE INDEX inbound_messages_by_keyword ON inbound_messages (workspace_id, from_number, keyword, written_at)
WHERE keyword IS NOT NULL;

CREATE INDEX inbound_messages_by_sender ON inbound_messages (workspace_id, from_number, received_at);

CREATE TABLE accounts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    provider TEXT COLLATE "C" NOT NULL,
    sealed TEXT COLLATE "C" NOT NULL,
    replies_to_keywords BIGINT NOT NULL CHECK (replies_to_keywords IN (0, 1)),
    revision BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    UNIQUE (workspace_id, provider)
);

CREATE TABLE callbacks (
    account_id TEXT COLLATE "C" NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    result TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    received_at TEXT COLLATE "C" NOT NULL,
    report TEXT COLLATE "C",
    PRIMARY KEY (account_id, event_id)
);

CREATE TABLE work (
    change BIGINT PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    unit_id TEXT COLLATE "C" NOT NULL,
    due_at TEXT COLLATE "C",
    UNIQUE (kind, workspace_id, unit_id)
);

CREATE INDEX work_due ON work (due_at, change) WHERE due_at IS NOT NULL;

CREATE INDEX work_done ON work (change) WHERE due_at IS NULL AND kind IN ('call', 'message');

CREATE TABLE last_change (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    change BIGINT NOT NULL
);

CREATE TABLE database_identity (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE TABLE lease (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL,
    host TEXT COLLATE "C",
    path TEXT COLLATE "C",
    renewed_at TEXT COLLATE "C" NOT NULL,
    quarantine_reason TEXT COLLATE "C",
    quarantine_epoch BIGINT,
    steady_since TEXT COLLATE "C",
    steady_until TEXT COLLATE "C"
);

-- Who dispatches: each worker has a lease of its own, by the clock of the database.
CREATE TABLE workers (
    epoch BIGINT PRIMARY KEY,
    place BIGINT NOT NULL,
    renewed_at TEXT COLLATE "C" NOT NULL,
    until TEXT COLLATE "C" NOT NULL,
    intent_permits BIGINT NOT NULL DEFAULT 0,
    request_permits BIGINT NOT NULL DEFAULT 0
);

-- Which worker drives a campaign, what a rated number sends, or the single calls and messages of a workspace.
CREATE TABLE claims (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    subject TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    held BIGINT NOT NULL CHECK (held IN (0, 1)),
    PRIMARY KEY (workspace_id, subject)
);

CREATE INDEX claims_held ON claims (epoch) WHERE held = 1;

CREATE TABLE home (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    host TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL
);

CREATE TABLE runs (
    campaign_number BIGINT PRIMARY KEY REFERENCES campaigns (number),
    owner_epoch BIGINT NOT NULL,
    next_slot_at TEXT COLLATE "C",
    assigned BIGINT NOT NULL DEFAULT 0,
    postponed_under TEXT COLLATE "C"
);

CREATE TABLE sender_paces (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    phone TEXT COLLATE "C" NOT NULL,
    next_slot_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, phone)
);

CREATE TABLE request_windows (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    started_at TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL
);

CREATE TABLE idempotency_keys (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    operation TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    token TEXT COLLATE "C" NOT NULL,
    answer BYTEA,
    location TEXT COLLATE "C",
    locked_until TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, operation, key)
);

CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

CREATE TABLE audit (
    number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C",
    actor TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C"
);

CREATE TABLE trail (
    number BIGINT PRIMARY KEY,
    at TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    what TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    campaign_number BIGINT REFERENCES campaigns (number),
    position BIGINT,
    call_id TEXT COLLATE "C",
    message_id TEXT COLLATE "C",
    dispatch_id TEXT COLLATE "C",
    step BIGINT,
    attempt BIGINT,
    leg BIGINT,
    due_at TEXT COLLATE "C",
    repeats BIGINT NOT NULL,
    actor TEXT COLLATE "C",
    phone TEXT COLLATE "C"
);

CREATE INDEX trail_of_campaign ON trail (campaign_number, position, number) WHERE campaign_number IS NOT NULL;

CREATE INDEX trail_of_workspace ON trail (workspace_id, number) WHERE what = 'workspace';

CREATE VIEW campaign_progress AS
SELECT
    campaigns.id,
    workspaces.name AS workspace,
    campaigns.name,
    campaigns.channel,
    campaigns.status,
    campaigns.pause_reason,
    campaigns.recipients_total AS total,
    campaigns.recipients_pending AS pending,
    campaigns.recipients_open AS open,
    campaigns.recipients_completed AS completed,
    campaigns.recipients_successful AS successful,
    campaigns.recipients_failed AS failed,
    campaigns.created_at,
    campaigns.started_at,
    campaigns.completed_at
FROM campaigns
JOIN workspaces ON workspaces.id = campaigns.workspace_id
WHERE campaigns.loading_until IS NULL;

CREATE VIEW recipient_outcomes AS
SELECT
    campaigns.id AS campaign_id,
    campaigns.name AS campaign,
    recipients.status,
    recipients.reason,
    COUNT(*) AS recipients
FROM recipients
JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE campaigns.loading_until IS NULL
GROUP BY campaigns.number, recipients.status, recipients.reason;

CREATE TABLE provider_throttles (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    provider TEXT COLLATE "C" NOT NULL,
    since TEXT COLLATE "C" NOT NULL,
    until TEXT COLLATE "C" NOT NULL,
    refusals BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, provider)
);

CREATE INDEX trail_of_number ON trail (workspace_id, phone, number) WHERE phone IS NOT NULL;

CREATE TABLE stops (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    number BIGINT NOT NULL
);

CREATE INDEX unsubscribes_held ON unsubscribes (created_at, workspace_id, phone) WHERE scope = 'held';

CREATE TABLE campaign_lists (
    number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES workspaces (id),
    change BIGINT NOT NULL
);

CREATE TABLE campaign_counts (
    workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    channel TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, channel, status)
);

CREATE INDEX campaigns_listed ON campaigns (workspace_id, channel, created_at, id) INCLUDE (number)
WHERE loading_until IS NULL;

CREATE INDEX campaigns_listed_in_status ON campaigns (workspace_id, channel, status, created_at, id) INCLUDE (number)
WHERE loading_until IS NULL;

CREATE INDEX dispatches_to_number ON dispatches (to_number, created_at);

CREATE INDEX dispatches_of_campaign ON dispatches (campaign_number, created_at, number) WHERE campaign_number IS NOT NULL;

CREATE INDEX dispatches_open ON dispatches (state, created_at, id) WHERE state IN ('dispatching', 'unknown');

-- For reports: what became of few. The plain good end is in neither index, so that most messages do not pay for them.
CREATE INDEX dispatches_not_plain ON dispatches (campaign_number)
WHERE state <> 'dispatching' AND (state <> 'accepted' OR reason IS NOT NULL OR error_code IS NOT NULL);

CREATE INDEX recipients_not_plain ON recipients (campaign_number, status, reason, dispatched)
WHERE status <> 'pending'
    AND status <> 'waiting'
    AND status <> 'dispatching'
    AND status <> 'in_progress'
    AND status <> 'unknown'
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0);

CREATE INDEX recipients_in_flight ON recipients (campaign_number, status, due_at NULLS FIRST, position)
WHERE status IN ('dispatching', 'in_progress', 'unknown');

CREATE INDEX callbacks_by_time ON callbacks (workspace_id, received_at);

CREATE INDEX inbound_messages_by_time ON inbound_messages (workspace_id, received_at);

CREATE INDEX inbound_messages_unclear ON inbound_messages (workspace_id, received_at) WHERE unclear = 1;

CREATE INDEX audit_of_workspace ON audit (workspace_id, number);

CREATE TABLE subscriptions (
    name TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" REFERENCES workspaces (id),
    position BIGINT NOT NULL,
    gap_until BIGINT NOT NULL,
    holder TEXT COLLATE "C",
    held_until TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL
);

CREATE TABLE trail_purged (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    until BIGINT NOT NULL
);

INSERT INTO last_change (id, change) VALUES (1, 0);

INSERT INTO stops (id, number) VALUES (1, 0);

INSERT INTO trail_purged (id, until) VALUES (1, 0);

INSERT INTO database_identity (id) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- Events that wait for a dispatch, by the identifiers that they name.
CREATE INDEX callbacks_waiting ON callbacks (
    (report::json ->> 'provider_id'), workspace_id, (report::json ->> 'provider')
) WHERE report IS NOT NULL;

CREATE INDEX callbacks_waiting_for_telephony ON callbacks (
    (report::json ->> 'telephony_id'), workspace_id, (report::json ->> 'provider')
) WHERE report IS NOT NULL;

-- The highest number that an entry of the trail has had. No sequence: that would leave gaps, and its numbers would not be
-- undone with their transaction.
CREATE TABLE trail_numbers (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    last BIGINT NOT NULL
) WITH (fillfactor = 20);

INSERT INTO trail_numbers (id, last) VALUES (1, 0);

-- The folded names of campaigns by what three characters follow each other. Each is marked with the workspace's list: what
-- is searched for in one workspace is not looked for in others.
CREATE TABLE campaign_names (
    number BIGINT PRIMARY KEY,
    trigrams TEXT[] COLLATE "C" NOT NULL
);

CREATE INDEX campaign_names_by_trigram ON campaign_names USING gin (trigrams);

CREATE FUNCTION name_trigrams(list BIGINT, name TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(array_agg(DISTINCT list || ':' || first || second || third), '{}')
    FROM (
        SELECT letter AS first, lead(letter, 1) OVER places AS second, lead(letter, 2) OVER places AS third
        FROM string_to_table(name, NULL) WITH ORDINALITY AS letters (letter, place)
        WINDOW places AS (ORDER BY place)
    ) AS followed
    WHERE third IS NOT NULL
$$;

-- The numbers of names that hold all trigrams of a text in quotes. Only a bitmap reads an index of this kind.
CREATE FUNCTION names_with(list BIGINT, phrase TEXT, most BIGINT) RETURNS SETOF BIGINT
LANGUAGE sql STABLE SET enable_bitmapscan = on AS $$
    SELECT number FROM outreach.campaign_names
    WHERE trigrams @> outreach.name_trigrams(list, replace(substr(phrase, 2, char_length(phrase) - 2), '""', '"'))
    LIMIT most
$$;

-- What a list of campaigns is made of is kept by triggers, so that whatever is written, it is right in the same
-- transaction. A campaign that is still loading is in no list.
CREATE FUNCTION list_workspace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outreach.campaign_lists (workspace_id, change) VALUES (NEW.id, 0);
    RETURN NULL;
END
$$;

CREATE TRIGGER workspaces_listed AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION list_workspace();

CREATE FUNCTION list_campaign(added campaigns) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outreach.campaign_counts VALUES (added.workspace_id, added.channel, added.status, 1)
    ON CONFLICT (workspace_id, channel, status) DO UPDATE SET count = campaign_counts.count + 1;
    INSERT INTO outreach.campaign_names (number, trigrams)
    SELECT added.number, outreach.name_trigrams(number, added.name_folded)
    FROM outreach.campaign_lists WHERE workspace_id = added.workspace_id;
END
$$;

CREATE FUNCTION unlist_campaign(removed campaigns) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outreach.campaign_counts SET count = count - 1
    WHERE workspace_id = removed.workspace_id AND channel = removed.channel AND status = removed.status;
    DELETE FROM outreach.campaign_names WHERE number = removed.number;
END
$$;

CREATE FUNCTION change_list(workspace TEXT) RETURNS void LANGUAGE sql AS $$
    UPDATE outreach.campaign_lists SET change = change + 1 WHERE workspace_id = workspace
$$;

CREATE FUNCTION campaign_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.loading_until IS NULL THEN
        PERFORM outreach.change_list(NEW.workspace_id);
        PERFORM outreach.list_campaign(NEW);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER campaigns_inserted AFTER INSERT ON campaigns FOR EACH ROW EXECUTE FUNCTION campaign_inserted();

CREATE FUNCTION campaign_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.loading_until IS NULL AND NEW.loading_until IS NULL THEN
        IF OLD.status <> NEW.status THEN
            UPDATE outreach.campaign_counts SET count = count - 1
            WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
            INSERT INTO outreach.campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
            ON CONFLICT (workspace_id, channel, status) DO UPDATE SET count = campaign_counts.count + 1;
        END IF;
        IF OLD.name_folded <> NEW.name_folded THEN
            UPDATE outreach.campaign_names SET trigrams = outreach.name_trigrams(lists.number, NEW.name_folded)
            FROM outreach.campaign_lists AS lists
            WHERE lists.workspace_id = NEW.workspace_id AND campaign_names.number = NEW.number;
        END IF;
    ELSIF OLD.loading_until IS NOT NULL AND NEW.loading_until IS NULL THEN
        PERFORM outreach.list_campaign(NEW);
    ELSIF OLD.loading_until IS NULL THEN
        PERFORM outreach.unlist_campaign(OLD);
    END IF;
    IF OLD.loading_until IS NULL OR NEW.loading_until IS NULL THEN
        PERFORM outreach.change_list(NEW.workspace_id);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER campaigns_changed AFTER UPDATE ON campaigns FOR EACH ROW EXECUTE FUNCTION campaign_changed();

CREATE FUNCTION campaign_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.loading_until IS NULL THEN
        PERFORM outreach.change_list(OLD.workspace_id);
        PERFORM outreach.unlist_campaign(OLD);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER campaigns_deleted AFTER DELETE ON campaigns FOR EACH ROW EXECUTE FUNCTION campaign_deleted();

-- Recipients refer to a campaign that is there. A foreign key would look for it once a row, a sixth of what the server
-- computes while contacts are loaded; this looks once a statement.
CREATE FUNCTION recipients_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    given BIGINT;
BEGIN
    FOR given IN SELECT DISTINCT campaign_number FROM added LOOP
        PERFORM 1 FROM outreach.campaigns WHERE number = given FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = format('recipients refer to campaign %s, which is not there', given);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TRIGGER recipients_of_campaign AFTER INSERT ON recipients REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION recipients_inserted();

CREATE FUNCTION recipients_left() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM outreach.recipients WHERE campaign_number = OLD.number LIMIT 1;
    IF FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('recipients refer to campaign %s', OLD.number);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER campaign_of_recipients AFTER DELETE ON campaigns FOR EACH ROW EXECUTE FUNCTION recipients_left();

-- A campaign is shown with its agent.
CREATE FUNCTION agent_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM outreach.change_list(NEW.workspace_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER agents_changed AFTER UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION agent_changed();

-- What was told of a campaign whose loading was given up is no loss: nobody ever saw the campaign.
CREATE FUNCTION trail_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.campaign_number IS NULL OR EXISTS (
        SELECT 1 FROM outreach.campaigns WHERE number = OLD.campaign_number AND loading_until IS NULL
    ) THEN
        UPDATE outreach.trail_purged SET until = greatest(until, OLD.number) WHERE id = 1;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER trail_is_purged AFTER DELETE ON trail FOR EACH ROW EXECUTE FUNCTION trail_deleted();

-- Processes that wait for work, for calls or for the answer of a key are told once by each transaction that changes
-- some. The message names the topic and no tenant.
CREATE FUNCTION wake_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('outreach', TG_ARGV[0]);
    RETURN NULL;
END
$$;

CREATE TRIGGER work_wakes AFTER INSERT OR UPDATE ON work FOR EACH STATEMENT EXECUTE FUNCTION wake_up('work');

CREATE TRIGGER calls_wake AFTER UPDATE ON calls FOR EACH STATEMENT EXECUTE FUNCTION wake_up('calls');

CREATE TRIGGER keys_wake AFTER UPDATE ON idempotency_keys FOR EACH STATEMENT EXECUTE FUNCTION wake_up('keys');
