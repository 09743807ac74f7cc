-- API keys.

-- by_digest --
-- The key of a request, whose workspace is not known yet.
SELECT {api_keys} FROM api_keys WHERE digest = :digest

-- get --
-- For operators' commands, which name keys alone.
SELECT {api_keys} FROM api_keys WHERE id = :key_id

-- list --
-- A workspace's keys, including revoked ones.
SELECT {api_keys} FROM api_keys WHERE workspace_id = :workspace_id ORDER BY created_at, id
