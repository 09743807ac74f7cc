-- Since which epoch, and why, the database has been kept from sending by itself.
ALTER TABLE lease ADD COLUMN held_reason TEXT;
ALTER TABLE lease ADD COLUMN held_epoch INTEGER;
