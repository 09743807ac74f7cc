-- Automation flows.

-- get --
-- One flow of a workspace.
SELECT * FROM flows WHERE id = :flow_id AND workspace_id = :workspace_id

-- insert --
-- A new flow.
INSERT INTO flows (id, workspace_id, name, steps, created_at, removed_at)
VALUES (:id, :workspace_id, :name, :steps, :created_at, :removed_at)

-- update --
-- Every field but the key and the workspace.
UPDATE flows SET name = :name, steps = :steps, created_at = :created_at, removed_at = :removed_at
WHERE id = :id AND workspace_id = :workspace_id

-- list --
-- For the operator; a workspace has few.
SELECT * FROM flows WHERE workspace_id = :workspace_id ORDER BY created_at, id
