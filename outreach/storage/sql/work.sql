-- Due times, and what has changed.

-- last_change --
-- Read when a dispatcher starts.
SELECT change FROM last_change

-- due --
-- In the order of the index `work_due`, which leaves out idle units.
SELECT {work} FROM work WHERE due_at IS NOT NULL ORDER BY due_at, change

-- oldest_single --
-- The first message or call that is due and queued, in the order of the index: calls under way are due to be polled.
SELECT due_at FROM work
WHERE due_at <= :now
    AND kind IN ('call', 'message')
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND CASE kind
        WHEN 'message' THEN (
            SELECT status FROM messages WHERE id = work.unit_id AND messages.workspace_id = work.workspace_id
        )
        ELSE (SELECT status FROM calls WHERE id = work.unit_id AND calls.workspace_id = work.workspace_id)
    END = 'queued'
ORDER BY due_at, change
LIMIT 1

-- since --
-- Read by a running dispatcher.
SELECT {work} FROM work WHERE change > :change ORDER BY change

-- forget --
-- Calls and messages come by the million and end soon; the oldest changes first.
DELETE FROM work WHERE change {in}
    SELECT change FROM work INDEXED BY work_done
    WHERE due_at IS NULL AND kind IN ('call', 'message')
    ORDER BY change
    LIMIT :limit
{end}
