-- Automation flows.

-- get --
-- One flow of a workspace.
SELECT * FROM flows WHERE id = :flow_id AND workspace_id = :workspace_id

-- insert --
-- A new flow.
INSERT INTO flows (id, workspace_id, name, steps, created_at)
VALUES (:id, :workspace_id, :name, :steps, :created_at)

-- list --
-- For the operator; a workspace has few.
SELECT * FROM flows WHERE workspace_id = :workspace_id ORDER BY created_at, id
