-- What each key may do. Keys from before may do what they could: the operations of the interface document.
ALTER TABLE api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT '["send"]';

-- A workspace's calls are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX calls_of_workspace ON calls (workspace_id, id);
