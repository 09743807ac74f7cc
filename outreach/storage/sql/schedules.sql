-- Schedules, by which campaigns recur.

-- paused --
-- By the engine: they need a person; of one workspace or of all.
SELECT {schedules} FROM schedules INDEXED BY schedules_paused
WHERE state = 'paused' AND removed_at IS NULL AND reason <> 'operator'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY workspace_id, id
LIMIT :limit

-- blocked --
-- Those whose latest run was not started, though the engine has not paused them; of one workspace or of all.
SELECT {schedules} FROM schedules
WHERE state <> 'paused' AND blocked > 0 AND removed_at IS NULL
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY workspace_id, id
LIMIT :limit
