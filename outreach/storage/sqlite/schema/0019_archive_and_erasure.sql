-- Campaigns that are put away, and those whose contacts were erased.
ALTER TABLE campaigns ADD COLUMN archived_at TEXT;

ALTER TABLE campaigns ADD COLUMN erased_at TEXT;

CREATE INDEX campaigns_archived ON campaigns (workspace_id, channel, status) WHERE archived_at IS NOT NULL;
