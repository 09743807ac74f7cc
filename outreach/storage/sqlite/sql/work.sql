-- What is due, and what has changed.

-- last_change --
-- Where a dispatcher begins to listen.
SELECT change FROM last_change

-- set_last_change --
-- Kept apart from the units, so that forgetting the latest takes no number back.
UPDATE last_change SET change = :change

-- due --
-- In the order of the index `work_due`, which leaves out those with nothing to do.
SELECT {work} FROM work WHERE due_at IS NOT NULL ORDER BY due_at, change

-- since --
-- What a dispatcher has not heard of.
SELECT {work} FROM work WHERE change > :change ORDER BY change

-- forget --
-- Calls and messages come by the million and are over soon; the oldest changes first.
DELETE FROM work WHERE change IN (
    SELECT change FROM work INDEXED BY work_done
    WHERE due_at IS NULL AND kind IN ('call', 'message')
    ORDER BY change
    LIMIT :limit
)
