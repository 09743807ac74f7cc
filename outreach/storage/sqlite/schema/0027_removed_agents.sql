-- Agents that were removed: campaigns and calls that are over still name them.
ALTER TABLE agents ADD COLUMN removed_at TEXT;
