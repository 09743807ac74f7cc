-- The right to dispatch, and where the database lives.

-- current --
-- There is one lease.
SELECT * FROM lease

-- put --
-- Taken or renewed.
INSERT INTO lease (id, epoch, host, path, renewed_at, held_reason, held_epoch)
VALUES (1, :epoch, :host, :path, :renewed_at, :held_reason, :held_epoch)
ON CONFLICT (id) DO UPDATE SET
    epoch = excluded.epoch, host = excluded.host, path = excluded.path, renewed_at = excluded.renewed_at,
    held_reason = excluded.held_reason, held_epoch = excluded.held_epoch

-- database_id --
-- Given when the schema was made.
SELECT id FROM database_identity

-- home --
-- There is one home.
SELECT host, path FROM home

-- set_home --
-- An operator confirmed that the database lives here now.
INSERT INTO home (id, host, path) VALUES (1, :host, :path)
ON CONFLICT (id) DO UPDATE SET host = excluded.host, path = excluded.path
