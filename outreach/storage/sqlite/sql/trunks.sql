-- SIP trunks.

-- get --
-- One trunk of a workspace.
SELECT * FROM trunks WHERE id = :trunk_id AND workspace_id = :workspace_id

-- insert --
-- A new trunk.
INSERT INTO trunks (id, workspace_id, name, address, provider_trunk_id, created_at)
VALUES (:id, :workspace_id, :name, :address, :provider_trunk_id, :created_at)

-- list --
-- For the operator; a workspace has few.
SELECT * FROM trunks WHERE workspace_id = :workspace_id ORDER BY created_at, id
