-- Voice agents.

-- list --
-- A workspace's agents.
SELECT {agents} FROM agents WHERE workspace_id = :workspace_id ORDER BY created_at, id
