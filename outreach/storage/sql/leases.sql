-- The database's identity.

-- database_id --
-- Assigned when the schema is created.
SELECT id FROM database_identity
