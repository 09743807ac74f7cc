-- waiting --
-- Early events of an identifier; the terms are those of their two indexes.
SELECT {callbacks} FROM callbacks
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

-- sweep --
-- In slices, the oldest of each workspace first: an index of all would slow down every callback.
DELETE FROM callbacks WHERE rowid IN (
    SELECT callbacks.rowid
    FROM workspaces
    CROSS JOIN callbacks INDEXED BY callbacks_by_time ON callbacks.workspace_id = workspaces.id
    WHERE callbacks.received_at < :before
    ORDER BY workspaces.rowid, callbacks.received_at
    LIMIT :limit
)
