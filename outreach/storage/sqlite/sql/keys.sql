-- API keys.

-- by_digest --
-- Whose key a request carries: the workspace is what we want to learn, so it is no condition.
SELECT {api_keys} FROM api_keys WHERE digest = :digest

-- get --
-- The operator names keys alone.
SELECT {api_keys} FROM api_keys WHERE id = :key_id

-- list --
-- A workspace's keys, revoked ones too.
SELECT {api_keys} FROM api_keys WHERE workspace_id = :workspace_id ORDER BY created_at, id
