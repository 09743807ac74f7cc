-- What providers called back.

-- known --
-- Whether an event has come before.
SELECT 1 AS known FROM callbacks
WHERE account_id = :account_id AND event_id = :event_id AND workspace_id = :workspace_id

-- insert --
-- Once for each event of an account.
INSERT INTO callbacks (workspace_id, account_id, event_id, result, body, received_at)
VALUES (:workspace_id, :account_id, :event_id, :result, :body, :received_at)

-- list --
-- Newest first.
SELECT * FROM callbacks
WHERE workspace_id = :workspace_id
ORDER BY received_at DESC, account_id DESC, event_id DESC
LIMIT :limit

-- sweep --
-- In slices, the oldest first.
DELETE FROM callbacks WHERE rowid IN (
    SELECT rowid FROM callbacks WHERE received_at < :before ORDER BY received_at LIMIT :limit
)
