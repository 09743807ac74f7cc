-- Messages that hold a word of opting out and were taken for no keyword: for a person to read.
ALTER TABLE inbound_messages ADD COLUMN unclear INTEGER NOT NULL DEFAULT 0 CHECK (unclear IN (0, 1));

CREATE INDEX inbound_messages_unclear ON inbound_messages (workspace_id, received_at, id) WHERE unclear = 1;
