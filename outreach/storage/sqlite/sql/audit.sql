-- The audit trail; append only.

-- append --
-- Numbered by the database: clocks may step back.
INSERT INTO audit (at, workspace_id, actor, action, subject, detail)
VALUES (:at, :workspace_id, :actor, :action, :subject, :detail)

-- list --
-- The newest of one workspace, in the order of the index `audit_of_workspace`.
SELECT * FROM audit WHERE workspace_id = :workspace_id ORDER BY number DESC LIMIT :limit

-- list_all --
-- The newest of all.
SELECT * FROM audit ORDER BY number DESC LIMIT :limit
