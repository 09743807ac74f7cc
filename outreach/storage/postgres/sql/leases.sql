-- versions --
-- What the database is, and its latest migration.
SELECT 'PostgreSQL ' || current_setting('server_version'), (SELECT MAX(name) FROM migrations)
