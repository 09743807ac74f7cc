-- Trunks and flows that were removed: campaigns that are over still name them.
ALTER TABLE trunks ADD COLUMN removed_at TEXT;

ALTER TABLE flows ADD COLUMN removed_at TEXT;
