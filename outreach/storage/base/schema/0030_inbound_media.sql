-- The links to the media of messages that people write back.
ALTER TABLE inbound_messages ADD COLUMN media TEXT NOT NULL DEFAULT '[]';
