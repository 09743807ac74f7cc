-- Everything: tables with their indexes and first rows, then triggers.
--
-- Timestamps are texts in UTC of one width (2026-11-20T16:10:25.000000Z), so that they sort as the moments
-- do. Booleans are 0 and 1. Columns that hold JSON hold it as text. Phone numbers named `phone` are E.164.

-- Every message pays for each index. None ends with what only breaks ties, and none begins with the workspace where what
-- follows is rare enough.

-- `retention_days`: after so many days contacts and texts of what has ended are erased; null keeps them.
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
    updated_at TEXT NOT NULL,
    retention_days INTEGER
) STRICT;

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT,
    scopes TEXT NOT NULL DEFAULT '["send"]'
) STRICT;

CREATE INDEX api_keys_of_workspace ON api_keys (workspace_id);

-- With `removed_at` it was removed: campaigns and calls that are over still name it. So do trunks and flows.
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
    updated_at TEXT NOT NULL,
    removed_at TEXT
) STRICT;

CREATE INDEX agents_of_workspace ON agents (workspace_id);

CREATE TABLE trunks (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    provider_trunk_id TEXT,
    created_at TEXT NOT NULL,
    removed_at TEXT
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
    created_at TEXT NOT NULL,
    removed_at TEXT
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
    archived_campaign INTEGER,
    PRIMARY KEY (workspace_id, phone)
) STRICT, WITHOUT ROWID;

CREATE INDEX unsubscribes_by_time ON unsubscribes (workspace_id, created_at);

-- Who is held back until somebody has decided: few in a register of millions.
CREATE INDEX unsubscribes_held ON unsubscribes (created_at, workspace_id, phone) WHERE scope = 'held';

CREATE INDEX unsubscribes_to_hash ON unsubscribes (workspace_id, created_at)
WHERE substr(phone, 1, 1) <> '#' AND scope <> 'held';

-- A campaign is known outside by its id; its recipients and dispatches name it by its number, which keeps
-- millions of rows small. While `loading_until` is set nobody sees the campaign. `variable_names`, as JSON, may fill the
-- placeholders of its text; null means unknown.
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
    trunk_id TEXT REFERENCES trunks (id),
    cli_mode TEXT,
    cli_group TEXT,
    ivr_enabled INTEGER CHECK (ivr_enabled IN (0, 1)),
    call_screen_enabled INTEGER CHECK (call_screen_enabled IN (0, 1)),
    double_dial INTEGER CHECK (double_dial IN (0, 1)),
    csv_column_headers TEXT NOT NULL,
    message_mode TEXT,
    message_source TEXT,
    body TEXT,
    flow_id TEXT REFERENCES flows (id),
    carrier TEXT,
    from_number TEXT,
    rate_per_minute INTEGER,
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
    loading_until TEXT,
    variable_names TEXT,
    archived_at TEXT,
    erased_at TEXT,
    retry_voicemail INTEGER CHECK (retry_voicemail IN (0, 1))
) STRICT;

CREATE INDEX campaigns_in_status ON campaigns (status, created_at, id) WHERE loading_until IS NULL;

CREATE INDEX campaigns_loading ON campaigns (loading_until, id) WHERE loading_until IS NOT NULL;

-- Newest first, of one channel, in whatever status or in one; what both channels have is merged. With `loading_until`,
-- though it is null in all of them, SQLite need not look at the campaigns themselves.
CREATE INDEX campaigns_listed ON campaigns (workspace_id, channel, created_at, id, loading_until)
WHERE loading_until IS NULL;

CREATE INDEX campaigns_listed_in_status ON campaigns (workspace_id, channel, status, created_at, id, loading_until)
WHERE loading_until IS NULL;

CREATE INDEX campaigns_archived ON campaigns (workspace_id, channel, status) WHERE archived_at IS NOT NULL;

-- What the retention looks for, the oldest first. Rows leave these indexes as they are erased.
CREATE INDEX campaigns_to_erase ON campaigns (workspace_id, completed_at)
WHERE completed_at IS NOT NULL AND erased_at IS NULL AND loading_until IS NULL;

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
    external_id TEXT,
    PRIMARY KEY (campaign_number, position)
) STRICT;

CREATE INDEX recipients_by_phone ON recipients (campaign_number, phone) WHERE phone IS NOT NULL;

CREATE INDEX recipients_without_phone ON recipients (campaign_number, phone_number) WHERE phone IS NULL;

-- Due work is found without looking at those that have ended: one index for each state that waits for us.
CREATE INDEX recipients_pending ON recipients (campaign_number, position) WHERE status = 'pending';

CREATE INDEX recipients_waiting_due ON recipients (campaign_number, due_at, position) WHERE status = 'waiting';

-- A changed rule makes those due again that it has put off.
CREATE INDEX recipients_waiting_for ON recipients (campaign_number, reason, due_at, position)
WHERE status = 'waiting';

-- An opt-out ends who waits with its number, in every campaign.
CREATE INDEX recipients_waiting_with ON recipients (phone) WHERE status = 'waiting' AND phone IS NOT NULL;

-- How many are in flight, and whose receipt has been waited for long enough.
CREATE INDEX recipients_in_flight ON recipients (campaign_number, status, due_at, position)
WHERE status IN ('dispatching', 'in_progress', 'unknown');

-- The application's own name of a contact. Most campaigns have none, so the index holds only those that there are.
CREATE INDEX recipients_by_external_id ON recipients (external_id, campaign_number) WHERE external_id IS NOT NULL;

CREATE INDEX recipients_not_plain ON recipients (campaign_number, status, reason, dispatched)
WHERE status <> 'pending'
    AND status <> 'waiting'
    AND status <> 'dispatching'
    AND status <> 'in_progress'
    AND status <> 'unknown'
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0);

-- For people who open the file. Not at the end: where the newest table is a view, SQLite's integrity check finds no lost
-- pages (3.40).
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
    country TEXT,
    FOREIGN KEY (campaign_number) REFERENCES campaigns (number),
    FOREIGN KEY (campaign_number, position) REFERENCES recipients (campaign_number, position)
) STRICT;

CREATE INDEX calls_of_recipient ON calls (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_by_provider_id ON calls (workspace_id, provider_call_id) WHERE provider_call_id IS NOT NULL;

CREATE INDEX calls_open ON calls (workspace_id, agent_id, to_number)
WHERE status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed');

CREATE INDEX calls_to_erase ON calls (workspace_id, ended_at)
WHERE ended_at IS NOT NULL AND to_number <> '' AND campaign_number IS NULL;

-- A workspace's calls are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX calls_of_workspace ON calls (workspace_id, id);

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

CREATE INDEX messages_to_erase ON messages (workspace_id, ended_at) WHERE ended_at IS NOT NULL AND to_number <> '';

-- A workspace's messages are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX messages_of_workspace ON messages (workspace_id, id);

-- The ledger: one row is one request to a provider, committed before the provider gets it.
-- Prices may depend on `country`; it stays where a person's number is erased, so that a cost stays the same.
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
    country TEXT,
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

CREATE INDEX dispatches_of_message ON dispatches (message_id) WHERE message_id IS NOT NULL;

CREATE INDEX dispatches_of_call ON dispatches (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX dispatches_by_provider_id ON dispatches (provider_id) WHERE provider_id IS NOT NULL;

CREATE INDEX dispatches_to_number ON dispatches (to_number, created_at);

CREATE INDEX dispatches_of_campaign ON dispatches (campaign_number, created_at) WHERE campaign_number IS NOT NULL;

-- Both kinds of open requests in one: each message comes and goes here.
CREATE INDEX dispatches_open ON dispatches (state, created_at, id) WHERE state IN ('dispatching', 'unknown');

-- For reports: what became of few. The plain good end is in neither index, so that most messages do not pay for them.
-- No NOT IN: SQLite makes a table of its values for every row that is written, which takes 10 µs.
CREATE INDEX dispatches_not_plain ON dispatches (campaign_number)
WHERE state <> 'dispatching' AND (state <> 'accepted' OR reason IS NOT NULL OR error_code IS NOT NULL);

-- What people wrote back. `unclear` ones hold a word of opting out and were taken for no keyword: for a person to read.
-- `archived_campaign`, here and in unsubscribes, keeps what belongs to an archived campaign: without its requests it would
-- belong to an earlier one. `media` are links, as JSON.
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
    received_at TEXT NOT NULL,
    unclear INTEGER NOT NULL DEFAULT 0 CHECK (unclear IN (0, 1)),
    archived_campaign INTEGER,
    media TEXT NOT NULL DEFAULT '[]'
) STRICT;

-- One message is taken in once, however often its carrier hands it over.
CREATE UNIQUE INDEX inbound_messages_by_provider_id ON inbound_messages (workspace_id, provider, provider_id)
WHERE provider_id IS NOT NULL;

CREATE INDEX inbound_messages_by_keyword ON inbound_messages (workspace_id, from_number, keyword, written_at)
WHERE keyword IS NOT NULL;

CREATE INDEX inbound_messages_by_sender ON inbound_messages (workspace_id, from_number, received_at);

CREATE INDEX inbound_messages_by_time ON inbound_messages (workspace_id, received_at);

CREATE INDEX inbound_messages_unclear ON inbound_messages (workspace_id, received_at) WHERE unclear = 1;

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
-- `report` is an unmatched event, as JSON, until a dispatch turns out to have the identifier that it names.
CREATE TABLE callbacks (
    account_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    result TEXT NOT NULL,
    body BLOB NOT NULL,
    received_at TEXT NOT NULL,
    report TEXT,
    PRIMARY KEY (account_id, event_id)
) STRICT;

CREATE INDEX callbacks_waiting ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.provider_id')
) WHERE report IS NOT NULL;

-- Unmatched events by the identifier of the telephony, which is what the answer may name.
CREATE INDEX callbacks_waiting_for_telephony ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.telephony_id')
) WHERE report IS NOT NULL;

CREATE INDEX callbacks_by_time ON callbacks (workspace_id, received_at);

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

-- Since `quarantine_epoch` the database has been kept from sending by itself. Between the two `steady` moments the wall
-- clock is known to have run without a step, by the holder of the lease.
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    host TEXT,
    path TEXT,
    renewed_at TEXT NOT NULL,
    quarantine_reason TEXT,
    quarantine_epoch INTEGER,
    steady_since TEXT,
    steady_until TEXT
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
    postponed_under TEXT
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

CREATE INDEX audit_of_workspace ON audit (workspace_id);

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

-- What the trail tells of a number: that it came onto the register and left it, and that somebody wrote back.
CREATE INDEX trail_of_number ON trail (workspace_id, phone) WHERE phone IS NOT NULL;

-- Provider throttles of a workspace, with an account there or, in a sandbox, without one.
CREATE TABLE provider_throttles (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    provider TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT NOT NULL,
    refusals INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, provider)
) STRICT, WITHOUT ROWID;

-- How many stops there have been: opt-outs, pauses, suspensions, providers that asked to wait, takeovers.
CREATE TABLE stops (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL
) STRICT;

INSERT INTO stops (id, number) VALUES (1, 0);

-- What a list of campaigns is made of without looking at all of them. Triggers keep it, so that whatever is written, it is
-- right in the same transaction. A campaign that is still loading is in no list.

-- One row a workspace. `change` goes up whenever something changes that a list of its campaigns may show.
CREATE TABLE campaign_lists (
    number INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL UNIQUE REFERENCES workspaces (id),
    change INTEGER NOT NULL
) STRICT;

-- How many campaigns there are.
CREATE TABLE campaign_counts (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    channel TEXT NOT NULL,
    status TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, channel, status)
) STRICT, WITHOUT ROWID;

-- Their folded names by what three characters follow each other. A row's number is that of the workspace's list,
-- shifted by 38 bits, and that of the campaign: what is searched for in one workspace is not looked for in others.
CREATE VIRTUAL TABLE campaign_names USING fts5 (name, tokenize = 'trigram case_sensitive 1', columnsize = 0);

-- Who reads the events under a name: how far, and which process does so now.
CREATE TABLE subscriptions (
    name TEXT PRIMARY KEY,
    workspace_id TEXT REFERENCES workspaces (id),
    position INTEGER NOT NULL,
    gap_until INTEGER NOT NULL,
    holder TEXT,
    held_until TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Up to which number entries of the trail were deleted by hand: a reader that is not past it has missed some.
CREATE TABLE trail_purged (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    until INTEGER NOT NULL
) STRICT;

INSERT INTO trail_purged (id, until) VALUES (1, 0);

-- Who dispatches: each worker has a lease of its own, by the clock of the database.
-- Of what all workers together may have on its way each may have so many intents and requests.
CREATE TABLE workers (
    epoch INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    renewed_at TEXT NOT NULL,
    until TEXT NOT NULL,
    intent_permits INTEGER NOT NULL DEFAULT 0,
    request_permits INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Which worker drives a campaign, what a rated number sends, or the single calls and messages of a workspace.
CREATE TABLE claims (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    subject TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX claims_held ON claims (epoch) WHERE held = 1;

-- What an SMS segment or a minute of a call costs a workspace, by provider and country, as a JSON array.
CREATE TABLE price_tables (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    currency TEXT NOT NULL,
    prices TEXT NOT NULL
) STRICT;

-- What an erased campaign's report keeps, and how far its erasure has come: null when it is done.
CREATE TABLE erasures (
    campaign_number INTEGER PRIMARY KEY REFERENCES campaigns (number),
    figures TEXT NOT NULL,
    next_position INTEGER
) STRICT;

CREATE INDEX erasures_unfinished ON erasures (campaign_number) WHERE next_position IS NOT NULL;

-- Numbers of erased people stay on the register as hashes with their workspace's salt; without a row there are none.
CREATE TABLE register_salts (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    salt TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Files that contacts and requests of ended campaigns were moved into.
CREATE TABLE archives (
    id TEXT NOT NULL PRIMARY KEY,
    file TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- What of whom is in them. While it is `copying` the rows here count; from `moving` on those in the archive, and the rows
-- here go, up to the next position; `archived` ones are gone. With `erase` the archive still has to erase them.
CREATE TABLE archived_campaigns (
    campaign_number INTEGER PRIMARY KEY REFERENCES campaigns (number),
    archive_id TEXT NOT NULL REFERENCES archives (id),
    state TEXT NOT NULL,
    next_position INTEGER NOT NULL,
    figures TEXT NOT NULL,
    erase INTEGER NOT NULL DEFAULT 0 CHECK (erase IN (0, 1)),
    begun_at TEXT NOT NULL
) STRICT;

CREATE INDEX archived_campaigns_to_erase ON archived_campaigns (campaign_number) WHERE erase = 1;

CREATE TRIGGER workspaces_listed AFTER INSERT ON workspaces BEGIN
    INSERT INTO campaign_lists (workspace_id, change) VALUES (NEW.id, 0);
END;

CREATE TRIGGER campaigns_inserted AFTER INSERT ON campaigns WHEN NEW.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO campaign_names (rowid, name)
    SELECT (number << 38) + NEW.number, NEW.name_folded FROM campaign_lists WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_published AFTER UPDATE OF loading_until ON campaigns
WHEN OLD.loading_until IS NOT NULL AND NEW.loading_until IS NULL BEGIN
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO campaign_names (rowid, name)
    SELECT (number << 38) + NEW.number, NEW.name_folded FROM campaign_lists WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_hidden AFTER UPDATE OF loading_until ON campaigns
WHEN OLD.loading_until IS NULL AND NEW.loading_until IS NOT NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = OLD.workspace_id;
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    DELETE FROM campaign_names WHERE rowid = (
        SELECT (number << 38) + OLD.number FROM campaign_lists WHERE workspace_id = OLD.workspace_id
    );
END;

CREATE TRIGGER campaigns_deleted AFTER DELETE ON campaigns WHEN OLD.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = OLD.workspace_id;
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    DELETE FROM campaign_names WHERE rowid = (
        SELECT (number << 38) + OLD.number FROM campaign_lists WHERE workspace_id = OLD.workspace_id
    );
END;

CREATE TRIGGER campaigns_changed AFTER UPDATE ON campaigns WHEN NEW.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_moved AFTER UPDATE OF status ON campaigns
WHEN OLD.status <> NEW.status AND OLD.loading_until IS NULL AND NEW.loading_until IS NULL BEGIN
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER campaigns_renamed AFTER UPDATE OF name_folded ON campaigns
WHEN OLD.name_folded <> NEW.name_folded AND OLD.loading_until IS NULL AND NEW.loading_until IS NULL BEGIN
    UPDATE campaign_names SET name = NEW.name_folded WHERE rowid = (
        SELECT (number << 38) + NEW.number FROM campaign_lists WHERE workspace_id = NEW.workspace_id
    );
END;

-- A campaign is shown with its agent.
CREATE TRIGGER agents_changed AFTER UPDATE ON agents BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
END;

-- What was told of a campaign whose loading was given up is no loss: nobody ever saw the campaign.
CREATE TRIGGER trail_is_purged AFTER DELETE ON trail
WHEN OLD.campaign_number IS NULL OR EXISTS (
    SELECT 1 FROM campaigns WHERE number = OLD.campaign_number AND loading_until IS NULL
)
BEGIN
    UPDATE trail_purged SET until = max(until, OLD.number) WHERE id = 1;
END;
