-- Campaigns that are put away, and those whose contacts were erased.
ALTER TABLE campaigns ADD COLUMN archived_at TEXT;

ALTER TABLE campaigns ADD COLUMN erased_at TEXT;

CREATE INDEX campaigns_archived ON campaigns (workspace_id, channel, status) WHERE archived_at IS NOT NULL;

-- For how many days after their end contacts and texts are kept; null for good.
ALTER TABLE workspaces ADD COLUMN retention_days INTEGER;

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

-- What the retention looks for, the oldest first. Rows leave these indexes as they are erased.
CREATE INDEX campaigns_to_erase ON campaigns (workspace_id, completed_at)
WHERE completed_at IS NOT NULL AND erased_at IS NULL AND loading_until IS NULL;

CREATE INDEX messages_to_erase ON messages (workspace_id, ended_at) WHERE ended_at IS NOT NULL AND to_number <> '';

CREATE INDEX calls_to_erase ON calls (workspace_id, ended_at)
WHERE ended_at IS NOT NULL AND to_number <> '' AND campaign_number IS NULL;

CREATE INDEX unsubscribes_to_hash ON unsubscribes (workspace_id, created_at)
WHERE substr(phone, 1, 1) <> '#' AND scope <> 'held';
