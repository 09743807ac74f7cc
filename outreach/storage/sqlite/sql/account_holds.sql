-- How long providers want to be left alone.

-- get --
-- What one asked for last, over or not.
SELECT * FROM account_holds WHERE workspace_id = :workspace_id AND provider = :provider

-- put --
-- Over what it asked for before.
INSERT INTO account_holds (workspace_id, provider, since, until, refusals)
VALUES (:workspace_id, :provider, :since, :until, :refusals)
ON CONFLICT (workspace_id, provider) DO UPDATE SET
    since = excluded.since,
    until = excluded.until,
    refusals = excluded.refusals

-- delete --
-- It accepts again.
DELETE FROM account_holds WHERE workspace_id = :workspace_id AND provider = :provider
