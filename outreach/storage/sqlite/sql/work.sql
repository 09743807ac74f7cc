-- set_last_change --
-- Kept apart from the units, so that deleting the latest does not reuse a number.
UPDATE last_change SET change = ?
