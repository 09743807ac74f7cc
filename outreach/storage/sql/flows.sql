-- Automation flows.

-- list --
-- A workspace's flows.
SELECT {flows} FROM flows WHERE workspace_id = :workspace_id ORDER BY created_at, id
