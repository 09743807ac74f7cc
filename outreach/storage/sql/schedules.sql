-- Schedules, by which campaigns recur.

-- due --
-- Those that have something to do, the one that waits longest first.
SELECT {schedules} FROM schedules INDEXED BY schedules_due WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit

-- active --
-- All that will have something to do: a restored database pauses them.
SELECT {schedules} FROM schedules INDEXED BY schedules_due WHERE due_at IS NOT NULL ORDER BY due_at, id

-- paused --
-- By the engine: they need a person; of one workspace or of all.
SELECT {schedules} FROM schedules INDEXED BY schedules_paused
WHERE state = 'paused' AND removed_at IS NULL AND reason <> 'operator'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY workspace_id, id
LIMIT :limit
