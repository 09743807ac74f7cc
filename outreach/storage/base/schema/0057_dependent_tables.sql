-- The tables that are the same in every database and refer to those of `0056_own_tables`, and two views.

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

CREATE TABLE runs (
    campaign_number {integer} PRIMARY KEY REFERENCES campaigns (number),
    owner_epoch {integer} NOT NULL,
    next_slot_at {text},
    assigned {integer} NOT NULL DEFAULT 0,
    postponed_under {text}
) {strict};

-- The forecasts of a campaign as they were at its start and after each change. `basis` names what was forecast: a revision
-- of the campaign, and a throttle of its provider. The content is at most 10 kB of JSON.
CREATE TABLE forecasts (
    campaign_number {integer} NOT NULL REFERENCES campaigns (number),
    basis {text} NOT NULL,
    made_at {text} NOT NULL,
    content {text} NOT NULL,
    PRIMARY KEY (campaign_number, basis)
) {strict};

-- Approvals of starts, by the revision of the campaign. The figures are JSON.
CREATE TABLE campaign_approvals (
    campaign_number {integer} NOT NULL REFERENCES campaigns (number),
    revision {integer} NOT NULL,
    approved_by {text} NOT NULL,
    approved_at {text} NOT NULL,
    figures {text} NOT NULL,
    PRIMARY KEY (campaign_number, revision)
) {strict};

-- The figures that an erased campaign's report keeps, and how far its erasure has come: null when it is done.
CREATE TABLE erasures (
    campaign_number {integer} PRIMARY KEY REFERENCES campaigns (number),
    figures {text} NOT NULL,
    next_position {integer}
) {strict};

CREATE INDEX erasures_unfinished ON erasures (campaign_number) WHERE next_position IS NOT NULL;

-- The archive of each campaign. While the state is `copying`, the rows here count. From `moving` on the rows in the
-- archive count, and the rows here are deleted, up to the next position; when it is `archived`, none are left. With
-- `erase` the archive still has to erase the rows.
CREATE TABLE archived_campaigns (
    campaign_number {integer} PRIMARY KEY REFERENCES campaigns (number),
    archive_id {text} NOT NULL REFERENCES archives (id),
    state {text} NOT NULL,
    next_position {integer} NOT NULL,
    figures {text} NOT NULL,
    erase {integer} NOT NULL DEFAULT 0 CHECK (erase IN (0, 1)),
    begun_at {text} NOT NULL
) {strict};

CREATE INDEX archived_campaigns_to_erase ON archived_campaigns (campaign_number) WHERE erase = 1;

-- Apart from the calls: transcripts are long, and lists of calls do not read them.
CREATE TABLE transcripts (
    call_id {text} NOT NULL PRIMARY KEY REFERENCES calls (id),
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    campaign_number {integer} REFERENCES campaigns (number),
    position {integer},
    content {text} NOT NULL
) {strict};

CREATE INDEX transcripts_of_recipient ON transcripts (campaign_number, position) WHERE campaign_number IS NOT NULL;
