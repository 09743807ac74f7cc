-- SIP trunks.

-- list --
-- A workspace's trunks.
SELECT {trunks} FROM trunks WHERE workspace_id = :workspace_id ORDER BY created_at, id
