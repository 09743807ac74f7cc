-- What applications attach to campaigns, single messages and single calls: their own id, and a JSON object.
ALTER TABLE campaigns ADD COLUMN external_id {text};
ALTER TABLE campaigns ADD COLUMN metadata {text};
ALTER TABLE messages ADD COLUMN external_id {text};
ALTER TABLE messages ADD COLUMN metadata {text};
ALTER TABLE calls ADD COLUMN external_id {text};
ALTER TABLE calls ADD COLUMN metadata {text};

-- Lists by an application's own id, newest first.
CREATE INDEX campaigns_by_external_id ON campaigns (workspace_id, external_id, created_at, id)
    WHERE external_id IS NOT NULL;
CREATE INDEX messages_by_external_id ON messages (workspace_id, external_id, id) WHERE external_id IS NOT NULL;
CREATE INDEX calls_by_external_id ON calls (workspace_id, external_id, id) WHERE external_id IS NOT NULL;
