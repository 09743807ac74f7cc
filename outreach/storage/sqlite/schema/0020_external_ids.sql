-- The application's own name of a contact. Most campaigns have none, so the index holds only those that there are.
ALTER TABLE recipients ADD COLUMN external_id TEXT;

CREATE INDEX recipients_by_external_id ON recipients (external_id, campaign_number) WHERE external_id IS NOT NULL;
