-- What the database is.

-- database_id --
-- Given when the schema was made.
SELECT id FROM database_identity
