-- The workers that dispatch.

-- list --
-- Few: at most as many as there are processes.
SELECT {workers} FROM workers ORDER BY epoch
