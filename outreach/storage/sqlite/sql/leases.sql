-- versions --
-- What the database is, and its latest migration.
SELECT 'SQLite ' || sqlite_version(), (SELECT MAX(name) FROM _sqlite_migrations WHERE migration_set = 'outreach')
