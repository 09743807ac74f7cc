-- What is due, and what has changed.

-- next_change --
-- The number of this change; kept apart from the units, so that forgetting the latest takes no number back.
UPDATE last_change SET change = change + 1 RETURNING change

-- touch --
-- A unit's row has the number of its latest change as key: `since` reads along it.
INSERT INTO work (change, kind, workspace_id, unit_id, due_at)
VALUES (:change, :kind, :workspace_id, :unit_id, :due_at)
ON CONFLICT (kind, workspace_id, unit_id) DO UPDATE SET change = excluded.change, due_at = excluded.due_at

-- get --
-- One unit.
SELECT * FROM work WHERE kind = :kind AND workspace_id = :workspace_id AND unit_id = :unit_id

-- due --
-- In the order of the index `work_due`, which leaves out those with nothing to do.
SELECT * FROM work WHERE due_at IS NOT NULL ORDER BY due_at, change

-- since --
-- What a dispatcher has not heard of.
SELECT * FROM work WHERE change > :change ORDER BY change

-- last_change --
-- Where a dispatcher begins to listen.
SELECT change FROM last_change

-- forget --
-- Calls and messages come by the million and are over soon; the oldest changes first.
DELETE FROM work WHERE change IN (
    SELECT change FROM work INDEXED BY work_done
    WHERE due_at IS NULL AND kind IN ('call', 'message')
    ORDER BY change
    LIMIT :limit
)
