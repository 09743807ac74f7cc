-- Request windows and idempotency keys.

-- window --
-- How many requests a workspace has made lately.
SELECT * FROM request_windows WHERE workspace_id = :workspace_id

-- put_window --
-- Over the one before.
INSERT INTO request_windows (workspace_id, started_at, count) VALUES (:workspace_id, :started_at, :count)
ON CONFLICT (workspace_id) DO UPDATE SET started_at = excluded.started_at, count = excluded.count

-- stored --
-- What was answered to this key.
SELECT * FROM idempotency_keys WHERE workspace_id = :workspace_id AND operation = :operation AND key = :key

-- put_stored --
-- First when the request begins, then with its answer.
INSERT INTO idempotency_keys (
    workspace_id, operation, key, fingerprint, token, answer, location, locked_until, expires_at
) VALUES (
    :workspace_id, :operation, :key, :fingerprint, :token, :answer, :location, :locked_until, :expires_at
)
ON CONFLICT (workspace_id, operation, key) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    token = excluded.token,
    answer = excluded.answer,
    location = excluded.location,
    locked_until = excluded.locked_until,
    expires_at = excluded.expires_at

-- delete_stored --
-- A request that failed may be tried again under its key.
DELETE FROM idempotency_keys WHERE workspace_id = :workspace_id AND operation = :operation AND key = :key

-- sweep --
-- In slices, those that expired first.
DELETE FROM idempotency_keys WHERE rowid IN (
    SELECT rowid FROM idempotency_keys WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
