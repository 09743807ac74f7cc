-- SIP trunks.

-- get --
-- One trunk of a workspace.
SELECT * FROM trunks WHERE id = :trunk_id AND workspace_id = :workspace_id

-- insert --
-- A new trunk.
INSERT INTO trunks (id, workspace_id, name, address, provider_trunk_id, created_at, removed_at)
VALUES (:id, :workspace_id, :name, :address, :provider_trunk_id, :created_at, :removed_at)

-- update --
-- Every field but the key and the workspace.
UPDATE trunks SET
    name = :name,
    address = :address,
    provider_trunk_id = :provider_trunk_id,
    created_at = :created_at,
    removed_at = :removed_at
WHERE id = :id AND workspace_id = :workspace_id

-- list --
-- For the operator; a workspace has few.
SELECT * FROM trunks WHERE workspace_id = :workspace_id ORDER BY created_at, id
