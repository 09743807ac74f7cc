-- The schedule whose run an entry of the trail tells of.
ALTER TABLE trail ADD COLUMN schedule_id {text};
