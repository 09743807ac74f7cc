-- API keys.

-- by_digest --
-- Whose key a request carries: the workspace is what we want to learn, so it is no condition.
SELECT * FROM api_keys WHERE digest = :digest

-- get --
-- The operator names keys alone.
SELECT * FROM api_keys WHERE id = :key_id

-- insert --
-- A new key.
INSERT INTO api_keys (id, workspace_id, name, digest, hint, created_at, revoked_at)
VALUES (:id, :workspace_id, :name, :digest, :hint, :created_at, :revoked_at)

-- update --
-- Every field but the key and the workspace.
UPDATE api_keys SET
    name = :name,
    digest = :digest,
    hint = :hint,
    created_at = :created_at,
    revoked_at = :revoked_at
WHERE id = :id AND workspace_id = :workspace_id

-- list --
-- A workspace's keys, revoked ones too.
SELECT * FROM api_keys WHERE workspace_id = :workspace_id ORDER BY created_at, id
