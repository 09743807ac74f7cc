-- A workspace's messages are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX messages_of_workspace ON messages (workspace_id, id);
