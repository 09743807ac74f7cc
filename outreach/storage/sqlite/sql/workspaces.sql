-- Workspaces: the one table that is not within a workspace.

-- list --
-- For the operator; there are few.
SELECT {workspaces} FROM workspaces ORDER BY created_at, id
