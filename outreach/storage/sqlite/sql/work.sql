-- draw_changes --
-- Kept apart from the units, so that deleting the latest does not reuse a number.
UPDATE last_change SET change = change + ?

-- schedule --
-- After its number was drawn; the last value says how many numbers were drawn after it.
INSERT INTO work (kind, workspace_id, unit_id, due_at, change)
SELECT ?1, ?2, ?3, ?4, change - ?5 FROM last_change
WHERE true
ON CONFLICT (kind, workspace_id, unit_id) DO UPDATE SET due_at = excluded.due_at, change = excluded.change
