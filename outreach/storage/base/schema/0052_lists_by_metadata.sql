-- Lists by metadata look through what has some, newest first.
CREATE INDEX campaigns_with_metadata ON campaigns (workspace_id, channel, created_at, id) WHERE metadata IS NOT NULL;
CREATE INDEX messages_with_metadata ON messages (workspace_id, id) WHERE metadata IS NOT NULL;
CREATE INDEX calls_with_metadata ON calls (workspace_id, id) WHERE metadata IS NOT NULL;
