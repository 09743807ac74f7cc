-- Workspaces: the only table outside workspaces.

-- list --
-- For operators; there are few.
SELECT {workspaces} FROM workspaces ORDER BY created_at, id
