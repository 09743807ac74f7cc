-- Everything, as the first version needs it.
--
-- Timestamps are texts in UTC of one width (2026-11-20T16:10:25.000000Z), so that they sort as the moments
-- do. Booleans are 0 and 1. Columns that hold JSON hold it as text. Phone numbers named `phone` are E.164.

CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    sms_campaigns_enabled INTEGER NOT NULL CHECK (sms_campaigns_enabled IN (0, 1)),
    request_limit INTEGER,
    default_region TEXT,
    contact_hours INTEGER NOT NULL CHECK (contact_hours IN (0, 1)),
    frequency_cap INTEGER,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE INDEX api_keys_of_workspace ON api_keys (workspace_id);

CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    provider_agent_id TEXT,
    direction TEXT NOT NULL,
    allow_outbound INTEGER NOT NULL CHECK (allow_outbound IN (0, 1)),
    is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    placeholders TEXT,
    from_number TEXT,
    voicemail TEXT,
    voicemail_message TEXT,
    max_call_seconds INTEGER,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

CREATE INDEX agents_of_workspace ON agents (workspace_id);

CREATE TABLE trunks (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    provider_trunk_id TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX trunks_of_workspace ON trunks (workspace_id);

CREATE TABLE numbers (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    phone TEXT NOT NULL,
    carrier TEXT,
    trunk_id TEXT REFERENCES trunks (id),
    rate_per_minute INTEGER,
    created_at TEXT NOT NULL,
    UNIQUE (workspace_id, phone)
) STRICT;

CREATE TABLE flows (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    steps TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX flows_of_workspace ON flows (workspace_id);

CREATE TABLE sms_settings (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    footer_enabled INTEGER NOT NULL CHECK (footer_enabled IN (0, 1)),
    footer_text TEXT NOT NULL,
    max_segments INTEGER NOT NULL,
    retry_enabled INTEGER NOT NULL CHECK (retry_enabled IN (0, 1)),
    retry_max_attempts INTEGER NOT NULL,
    retry_delay_minutes INTEGER NOT NULL,
    custom_variables TEXT NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE call_settings (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    retry_max_attempts INTEGER NOT NULL,
    retry_delay_minutes INTEGER NOT NULL
) STRICT;

CREATE TABLE reply_settings (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    stop_text TEXT NOT NULL,
    start_text TEXT NOT NULL,
    help_text TEXT NOT NULL,
    help_when_opted_out INTEGER NOT NULL CHECK (help_when_opted_out IN (0, 1))
) STRICT;

CREATE TABLE unsubscribes (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    phone TEXT NOT NULL,
    scope TEXT NOT NULL,
    source TEXT NOT NULL,
    evidence TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (workspace_id, phone)
) STRICT, WITHOUT ROWID;

CREATE INDEX unsubscribes_by_time ON unsubscribes (workspace_id, created_at);

-- A campaign is known outside by its id; its recipients and dispatches name it by its number, which keeps
-- millions of rows small. While `loading_until` is set nobody sees the campaign.
CREATE TABLE campaigns (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    pause_reason TEXT,
    agent_id TEXT REFERENCES agents (id),
    schedule_type TEXT NOT NULL,
    scheduled_start_at TEXT,
    scheduled_expires_at TEXT,
    business_hours TEXT,
    holidays TEXT,
    batch_concurrency INTEGER NOT NULL,
    sip_trunk_id TEXT REFERENCES trunks (id),
    cli_mode TEXT,
    cli_group TEXT,
    ivr_enabled INTEGER CHECK (ivr_enabled IN (0, 1)),
    call_screen_enabled INTEGER CHECK (call_screen_enabled IN (0, 1)),
    double_dial INTEGER CHECK (double_dial IN (0, 1)),
    csv_column_headers TEXT NOT NULL,
    sms_mode TEXT,
    sms_message_source TEXT,
    sms_message_body TEXT,
    sms_flow_id TEXT REFERENCES flows (id),
    sms_carrier TEXT,
    sms_from_number TEXT,
    sms_rate_per_minute INTEGER,
    recipients_total INTEGER NOT NULL,
    recipients_pending INTEGER NOT NULL,
    recipients_completed INTEGER NOT NULL,
    recipients_successful INTEGER NOT NULL,
    recipients_failed INTEGER NOT NULL,
    recipients_open INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    loading_until TEXT
) STRICT;

CREATE INDEX campaigns_of_workspace ON campaigns (workspace_id, created_at, id) WHERE loading_until IS NULL;

CREATE INDEX campaigns_in_status ON campaigns (status, created_at, id) WHERE loading_until IS NULL;

CREATE INDEX campaigns_loading ON campaigns (loading_until, id) WHERE loading_until IS NOT NULL;

CREATE INDEX campaigns_of_agent ON campaigns (agent_id) WHERE agent_id IS NOT NULL;

-- A table with a rowid, although its key would do: it is as small, reads as fast, and loads faster, by a tenth
-- for small contacts and more for large ones (measured with 300,000 rows).
CREATE TABLE recipients (
    campaign_number INTEGER NOT NULL REFERENCES campaigns (number),
    position INTEGER NOT NULL,
    phone_number TEXT NOT NULL,
    phone TEXT,
    first_name TEXT,
    last_name TEXT,
    email TEXT,
    company TEXT,
    custom_variables TEXT,
    status TEXT NOT NULL,
    reason TEXT,
    due_at TEXT,
    step INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    leg INTEGER NOT NULL DEFAULT 1,
    caller_id TEXT,
    dispatched INTEGER NOT NULL DEFAULT 0 CHECK (dispatched IN (0, 1)),
    successful INTEGER NOT NULL DEFAULT 0 CHECK (successful IN (0, 1)),
    ended_at TEXT,
    PRIMARY KEY (campaign_number, position)
) STRICT;

CREATE INDEX recipients_by_phone ON recipients (campaign_number, phone) WHERE phone IS NOT NULL;

CREATE INDEX recipients_without_phone ON recipients (campaign_number, phone_number) WHERE phone IS NULL;

-- Due work is found without looking at those that have ended: one index for each state that waits for us.
CREATE INDEX recipients_pending ON recipients (campaign_number, position) WHERE status = 'pending';

CREATE INDEX recipients_waiting ON recipients (campaign_number, position) WHERE status = 'waiting';

CREATE INDEX recipients_waiting_due ON recipients (campaign_number, due_at, position) WHERE status = 'waiting';

-- A changed rule makes those due again that it has put off.
CREATE INDEX recipients_waiting_for ON recipients (campaign_number, reason, due_at, position)
WHERE status = 'waiting';

-- An opt-out ends who waits with its number, in every campaign.
CREATE INDEX recipients_waiting_with ON recipients (phone) WHERE status = 'waiting' AND phone IS NOT NULL;

-- How many calls are in flight is asked before every wave.
CREATE INDEX recipients_in_flight ON recipients (campaign_number)
WHERE status IN ('dispatching', 'in_progress', 'unknown');

CREATE INDEX recipients_in_progress_due ON recipients (campaign_number, due_at, position)
WHERE status = 'in_progress';

CREATE TABLE calls (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    campaign_number INTEGER,
    position INTEGER,
    provider TEXT NOT NULL,
    provider_call_id TEXT,
    to_number TEXT NOT NULL,
    from_number TEXT,
    status TEXT NOT NULL,
    outcome TEXT,
    answered_by TEXT,
    variables TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    error TEXT,
    summary TEXT,
    created_at TEXT NOT NULL,
    dialed_at TEXT,
    answered_at TEXT,
    ended_at TEXT,
    FOREIGN KEY (campaign_number) REFERENCES campaigns (number),
    FOREIGN KEY (campaign_number, position) REFERENCES recipients (campaign_number, position)
) STRICT;

CREATE INDEX calls_of_recipient ON calls (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_by_provider_id ON calls (workspace_id, provider_call_id) WHERE provider_call_id IS NOT NULL;

CREATE INDEX calls_open ON calls (workspace_id, agent_id, to_number)
WHERE status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed');

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    to_number TEXT NOT NULL,
    from_number TEXT,
    carrier TEXT NOT NULL,
    body TEXT NOT NULL,
    segments INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    attempts INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    provider_id TEXT,
    purpose TEXT NOT NULL,
    send_until TEXT,
    created_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;

-- Answers to keywords are few among the messages, and how lately a number got one is asked.
CREATE INDEX messages_replies ON messages (workspace_id, to_number, purpose, created_at) WHERE purpose <> 'message';

-- The ledger: one row is one request to a provider, committed before the provider hears of it.
CREATE TABLE dispatches (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    channel TEXT NOT NULL,
    campaign_number INTEGER,
    position INTEGER,
    message_id TEXT REFERENCES messages (id),
    call_id TEXT REFERENCES calls (id),
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    leg INTEGER NOT NULL,
    try_number INTEGER NOT NULL,
    provider TEXT NOT NULL,
    from_number TEXT,
    to_number TEXT NOT NULL,
    body TEXT,
    segments INTEGER,
    state TEXT NOT NULL,
    provider_id TEXT,
    report TEXT,
    reason TEXT,
    error_code TEXT,
    error_message TEXT,
    slot_at TEXT NOT NULL,
    valid_until TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    settled_at TEXT,
    CHECK ((campaign_number IS NULL) = (position IS NULL)),
    FOREIGN KEY (campaign_number) REFERENCES campaigns (number),
    FOREIGN KEY (campaign_number, position) REFERENCES recipients (campaign_number, position)
) STRICT;

-- At most one request whose outcome is not known: these three are the delivery contract, not a speed-up.
CREATE UNIQUE INDEX dispatches_unsettled_of_recipient ON dispatches (campaign_number, position, step)
WHERE state IN ('dispatching', 'unknown') AND campaign_number IS NOT NULL;

CREATE UNIQUE INDEX dispatches_unsettled_of_message ON dispatches (message_id)
WHERE state IN ('dispatching', 'unknown') AND message_id IS NOT NULL;

CREATE UNIQUE INDEX dispatches_unsettled_of_call ON dispatches (call_id)
WHERE state IN ('dispatching', 'unknown') AND call_id IS NOT NULL;

CREATE INDEX dispatches_of_recipient ON dispatches (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX dispatches_of_campaign ON dispatches (campaign_number, created_at, id) WHERE campaign_number IS NOT NULL;

CREATE INDEX dispatches_to_number ON dispatches (workspace_id, to_number, created_at);

CREATE INDEX dispatches_of_message ON dispatches (message_id) WHERE message_id IS NOT NULL;

CREATE INDEX dispatches_of_call ON dispatches (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX dispatches_by_provider_id ON dispatches (provider_id) WHERE provider_id IS NOT NULL;

CREATE INDEX dispatches_dispatching ON dispatches (created_at, id) WHERE state = 'dispatching';

CREATE INDEX dispatches_unknown ON dispatches (created_at, id) WHERE state = 'unknown';

-- What people wrote back.
CREATE TABLE inbound_messages (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    from_number TEXT NOT NULL,
    to_number TEXT NOT NULL,
    body TEXT NOT NULL,
    provider TEXT,
    provider_id TEXT,
    keyword TEXT,
    written_at TEXT NOT NULL,
    received_at TEXT NOT NULL
) STRICT;

-- One message is taken in once, however often its carrier hands it over.
CREATE UNIQUE INDEX inbound_messages_by_provider_id ON inbound_messages (workspace_id, provider, provider_id)
WHERE provider_id IS NOT NULL;

CREATE INDEX inbound_messages_by_keyword ON inbound_messages (workspace_id, from_number, keyword, written_at)
WHERE keyword IS NOT NULL;

CREATE INDEX inbound_messages_by_time ON inbound_messages (workspace_id, received_at, id);

CREATE INDEX inbound_messages_by_sender ON inbound_messages (workspace_id, from_number, received_at);

-- Accounts at carriers and voice providers; the credentials are encrypted with a key that is not in this file.
CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    provider TEXT NOT NULL,
    sealed TEXT NOT NULL,
    replies_to_keywords INTEGER NOT NULL CHECK (replies_to_keywords IN (0, 1)),
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (workspace_id, provider)
) STRICT;

-- What providers called back, as it came: each event once, so that one that comes again changes nothing.
CREATE TABLE callbacks (
    account_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    result TEXT NOT NULL,
    body BLOB NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (account_id, event_id)
) STRICT;

CREATE INDEX callbacks_by_time ON callbacks (workspace_id, received_at, account_id, event_id);

CREATE INDEX callbacks_by_age ON callbacks (received_at);

-- What is due, and what changed last: a unit has the number of its latest change as key.
CREATE TABLE work (
    change INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    unit_id TEXT NOT NULL,
    due_at TEXT,
    UNIQUE (kind, workspace_id, unit_id)
) STRICT;

CREATE INDEX work_due ON work (due_at, change) WHERE due_at IS NOT NULL;

CREATE INDEX work_done ON work (change) WHERE due_at IS NULL AND kind IN ('call', 'message');

-- Kept apart from the work, so that numbers go on rising when the latest unit is forgotten.
CREATE TABLE last_change (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    change INTEGER NOT NULL
) STRICT;

INSERT INTO last_change (id, change) VALUES (1, 0);

-- One row for good: a copy keeps it, a new file has another.
CREATE TABLE database_identity (
    id TEXT NOT NULL PRIMARY KEY
) STRICT;

INSERT INTO database_identity (id) VALUES (lower(hex(randomblob(16))));

CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    host TEXT,
    path TEXT,
    renewed_at TEXT NOT NULL
) STRICT;

CREATE TABLE home (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    host TEXT NOT NULL,
    path TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
    campaign_number INTEGER PRIMARY KEY REFERENCES campaigns (number),
    owner_epoch INTEGER NOT NULL,
    next_slot_at TEXT,
    assigned INTEGER NOT NULL DEFAULT 0,
    held_under TEXT
) STRICT;

-- The pace of a sending number, over all campaigns that share it.
CREATE TABLE sender_paces (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    phone TEXT NOT NULL,
    next_slot_at TEXT NOT NULL,
    PRIMARY KEY (workspace_id, phone)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_windows (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    started_at TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;

CREATE TABLE idempotency_keys (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    token TEXT NOT NULL,
    answer BLOB,
    location TEXT,
    locked_until TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (workspace_id, operation, key)
) STRICT;

CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

-- No reference to the workspace: the trail outlives what it tells of.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    workspace_id TEXT,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT
) STRICT;

CREATE INDEX audit_of_workspace ON audit (workspace_id, number);

-- What happened to whom, and why. AUTOINCREMENT: a reader that has come to a number must never meet it again.
CREATE TABLE trail (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    what TEXT NOT NULL,
    rule TEXT NOT NULL,
    state TEXT,
    reason TEXT,
    campaign_number INTEGER REFERENCES campaigns (number),
    position INTEGER,
    call_id TEXT,
    message_id TEXT,
    dispatch_id TEXT,
    step INTEGER,
    attempt INTEGER,
    leg INTEGER,
    due_at TEXT,
    repeats INTEGER NOT NULL,
    actor TEXT,
    phone TEXT
) STRICT;

CREATE INDEX trail_of_campaign ON trail (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX trail_of_workspace ON trail (workspace_id) WHERE what = 'workspace';

-- For people who open the file.
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
