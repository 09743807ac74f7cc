-- waiting --
-- Early events of an identifier; the terms are those of their two indexes.
SELECT {callbacks} FROM (
    SELECT * FROM callbacks
    WHERE workspace_id = :workspace_id
        AND report::json ->> 'provider' = :provider
        AND report::json ->> 'provider_id' = :provider_id
        AND report IS NOT NULL
    UNION
    SELECT * FROM callbacks
    WHERE workspace_id = :workspace_id
        AND report::json ->> 'provider' = :provider
        AND report::json ->> 'telephony_id' = :provider_id
        AND report IS NOT NULL
) AS callbacks
ORDER BY received_at, event_id
LIMIT :limit

-- sweep --
-- In slices, the oldest of each workspace first: an index of all would slow down every callback.
DELETE FROM callbacks WHERE ctid = ANY (ARRAY(
    SELECT old.ctid
    FROM workspaces
    CROSS JOIN LATERAL (
        SELECT callbacks.ctid, callbacks.received_at FROM callbacks
        WHERE callbacks.workspace_id = workspaces.id AND callbacks.received_at < :before
        ORDER BY callbacks.received_at
        LIMIT :limit
    ) AS old
    ORDER BY workspaces.created_at, workspaces.id, old.received_at
    LIMIT :limit
))
