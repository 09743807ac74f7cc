-- What providers called back.

-- get --
-- An event that has come before.
SELECT * FROM callbacks
WHERE account_id = :account_id AND event_id = :event_id AND workspace_id = :workspace_id

-- insert --
-- Once for each event of an account.
INSERT INTO callbacks (workspace_id, account_id, event_id, result, body, received_at, report)
VALUES (:workspace_id, :account_id, :event_id, :result, :body, :received_at, :report)

-- update --
-- What became of it; the rest stays.
UPDATE callbacks SET result = :result, report = :report
WHERE account_id = :account_id AND event_id = :event_id AND workspace_id = :workspace_id

-- waiting --
-- Those that came before a dispatch had this identifier; the terms are those of their two indexes.
SELECT * FROM callbacks
WHERE rowid IN (
    SELECT rowid FROM callbacks
    WHERE workspace_id = :workspace_id
        AND json_extract(report, '$.provider') = :provider
        AND json_extract(report, '$.provider_id') = :provider_id
        AND report IS NOT NULL
    UNION ALL
    SELECT rowid FROM callbacks
    WHERE workspace_id = :workspace_id
        AND json_extract(report, '$.provider') = :provider
        AND json_extract(report, '$.telephony_id') = :provider_id
        AND report IS NOT NULL
)
ORDER BY received_at, event_id
LIMIT :limit

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
