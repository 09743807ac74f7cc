-- Which worker drives what.

-- held --
-- Read by each worker at its heartbeat, where there are several.
SELECT {claims} FROM claims INDEXED BY claims_held WHERE held = 1 ORDER BY epoch, workspace_id, subject

-- free --
-- When a worker ends: the next worker to claim sees that another one had the claim before.
UPDATE claims SET held = 0 WHERE epoch = :epoch AND held = 1

-- clear --
-- When a worker begins alone.
DELETE FROM claims
