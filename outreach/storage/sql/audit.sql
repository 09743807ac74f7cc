-- The audit log; append only.

-- list --
-- The newest of one workspace, in the order of the index `audit_of_workspace`; filters are rare, and have none.
SELECT number, {audit} FROM audit
WHERE workspace_id = :workspace_id
    AND actor = :actor  -- if given
    AND action = :action  -- if given
    AND subject {in} {values:subjects} {end}  -- if given
    AND number < :after
ORDER BY number DESC
LIMIT :limit

-- list_all --
-- The newest of all.
SELECT number, {audit} FROM audit WHERE number < :after ORDER BY number DESC LIMIT :limit
