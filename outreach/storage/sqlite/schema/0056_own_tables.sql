-- The tables, indexes and triggers that only SQLite has, or has in its own form.

-- `made_by`: the actor who made the key. `last_used_at`: its last use, to the hour.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT,
    scopes TEXT NOT NULL DEFAULT '["send"]',
    made_by TEXT,
    last_used_at TEXT
) STRICT;

CREATE INDEX api_keys_of_workspace ON api_keys (workspace_id);

-- A campaign is known outside by its id; its recipients and dispatches name it by its number, which keeps millions of
-- rows small. While `loading_until` is set, the campaign is hidden.
-- `variable_names`: the names that may fill the placeholders of its text, as JSON; null means unknown.
-- `adds_to`: the campaign that the contacts of this hidden one are moved to, slice by slice, once all are loaded.
-- `changed_by`: the actor who has changed it last; null means unknown.
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
    retry_voicemail INTEGER CHECK (retry_voicemail IN (0, 1)),
    replace_characters INTEGER CHECK (replace_characters IN (0, 1)),
    stay_open INTEGER NOT NULL DEFAULT 0 CHECK (stay_open IN (0, 1)),
    adds_to TEXT,
    external_id TEXT,
    metadata TEXT,
    from_numbers TEXT NOT NULL DEFAULT '[]',
    changed_by TEXT
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

-- Campaigns that the retention erases, the oldest first. Rows leave these indexes as they are erased.
CREATE INDEX campaigns_to_erase ON campaigns (workspace_id, completed_at)
WHERE completed_at IS NOT NULL AND erased_at IS NULL AND loading_until IS NULL;

CREATE INDEX campaigns_adding ON campaigns (adds_to) WHERE adds_to IS NOT NULL;

-- Lists by the application's identifier, or by metadata, newest first.
CREATE INDEX campaigns_by_external_id ON campaigns (workspace_id, external_id, created_at, id)
WHERE external_id IS NOT NULL;

CREATE INDEX campaigns_with_metadata ON campaigns (workspace_id, channel, created_at, id) WHERE metadata IS NOT NULL;

-- A table with a rowid, although its key would do: it is as small, reads as fast, and loads faster, by a tenth
-- for small contacts and more for large ones (measured with 300,000 rows).
-- `added_at`: when the contact was added to a campaign that existed; null where it was loaded with its campaign.
-- `time_zone`, `us_place`: where the contact is, as far as its list says.
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
    added_at TEXT,
    time_zone TEXT,
    us_place TEXT,
    PRIMARY KEY (campaign_number, position)
) STRICT;

CREATE INDEX recipients_without_phone ON recipients (campaign_number, phone_number) WHERE phone IS NULL;

-- Due work is found without looking at those that have ended: one index for each state that waits for us.
CREATE INDEX recipients_pending ON recipients (campaign_number, position) WHERE status = 'pending';

CREATE INDEX recipients_waiting_due ON recipients (campaign_number, due_at, position) WHERE status = 'waiting';

-- A changed rule makes those due again that it has put off.
CREATE INDEX recipients_waiting_for ON recipients (campaign_number, reason, due_at, position)
WHERE status = 'waiting';

-- An opt-out ends the waiting contacts with its number, in every campaign.
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

-- The number comes first: so the index serves one campaign, and all campaigns with a number.
CREATE INDEX recipients_by_phone ON recipients (phone, campaign_number) WHERE phone IS NOT NULL;

-- `cost` is in millionths of the currency, which add up exactly. `judged_at`: when a later verdict came.
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
    cost INTEGER,
    cost_currency TEXT,
    judged_at TEXT,
    external_id TEXT,
    metadata TEXT,
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

CREATE INDEX calls_to_number ON calls (to_number, created_at);

CREATE INDEX calls_of_campaign ON calls (campaign_number, id) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_of_agent ON calls (workspace_id, agent_id, id);

CREATE INDEX calls_by_status ON calls (workspace_id, status, id);

CREATE INDEX calls_by_outcome ON calls (workspace_id, (COALESCE(outcome, 'unknown')), id);

CREATE INDEX calls_by_external_id ON calls (workspace_id, external_id, id) WHERE external_id IS NOT NULL;

CREATE INDEX calls_with_metadata ON calls (workspace_id, id) WHERE metadata IS NOT NULL;

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

-- Requests that an operator has decided about, for taking the decisions back.
CREATE INDEX dispatches_decided ON dispatches (workspace_id, created_at, id)
WHERE state = 'given_up' OR reason = 'assumed_sent';

-- Replies of contacts. `unclear` ones hold a word of opting out and were taken for no keyword: for a person to read.
-- `archived_campaign`, here and in unsubscribes, keeps what belongs to a campaign in a ledger archive: without its requests it would
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

CREATE INDEX callbacks_waiting ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.provider_id')
) WHERE report IS NOT NULL;

-- Unmatched events by the identifier of the telephony, which is what the answer may name.
CREATE INDEX callbacks_waiting_for_telephony ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.telephony_id')
) WHERE report IS NOT NULL;

CREATE INDEX callbacks_by_time ON callbacks (workspace_id, received_at);

INSERT INTO database_identity (id) VALUES (lower(hex(randomblob(16))));

-- No reference to the workspace: the entries stay after it is gone.
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

-- The decision trail. AUTOINCREMENT: a reader that has come to a number must never meet it again.
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
    phone TEXT,
    schedule_id TEXT,
    webhook_id TEXT
) STRICT;

CREATE INDEX trail_of_campaign ON trail (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX trail_of_workspace ON trail (workspace_id) WHERE what = 'workspace';

-- Entries about a number: it was put on the register or taken from it, or the contact wrote back.
CREATE INDEX trail_of_number ON trail (workspace_id, phone) WHERE phone IS NOT NULL;

-- Lists of campaigns are made of this table, `campaign_counts` and `campaign_names`, without reading all campaigns.
-- Triggers keep them, so that they are right in the same transaction. A campaign that is still loading is in no list.
-- One row a workspace. `change` goes up with each change of something that a list of its campaigns may show.
CREATE TABLE campaign_lists (
    number INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL UNIQUE REFERENCES workspaces (id),
    change INTEGER NOT NULL
) STRICT;

-- Their folded names by what three characters follow each other. A row's number is that of the workspace's list,
-- shifted by 38 bits, and that of the campaign: what is searched for in one workspace is not looked for in others.
CREATE VIRTUAL TABLE campaign_names USING fts5 (name, tokenize = 'trigram case_sensitive 1', columnsize = 0);

-- The worker that drives a campaign, the requests of a rated number, or the single calls and messages of a workspace.
CREATE TABLE claims (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    subject TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX claims_held ON claims (epoch) WHERE held = 1;

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

-- Deleted entries of a campaign whose loading was given up are no loss: the campaign was never visible.
CREATE TRIGGER trail_is_purged AFTER DELETE ON trail
WHEN OLD.campaign_number IS NULL OR EXISTS (
    SELECT 1 FROM campaigns WHERE number = OLD.campaign_number AND loading_until IS NULL
)
BEGIN
    UPDATE trail_purged SET until = max(until, OLD.number) WHERE id = 1;
END;
