-- draw_changes --
-- Kept apart from the units, so that deleting the latest does not reuse a number.
UPDATE last_change SET change = change + given.count FROM unnest(?::bigint[]) AS given (count)

-- schedule --
-- After its number was drawn; the last value says how many numbers were drawn after it.
INSERT INTO work (kind, workspace_id, unit_id, due_at, change)
SELECT given.kind, given.workspace_id, given.unit_id, given.due_at, last_change.change - given.behind
FROM last_change
CROSS JOIN unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[])
    AS given (kind, workspace_id, unit_id, due_at, behind)
ON CONFLICT (kind, workspace_id, unit_id) DO UPDATE SET due_at = excluded.due_at, change = excluded.change
