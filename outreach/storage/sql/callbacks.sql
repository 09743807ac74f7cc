-- Callback events.

-- waited_for --
-- The identifiers that early events wait for: nearly always none.
SELECT wanted.value::text AS value FROM {each_row:wanted}
WHERE EXISTS (
    SELECT 1 FROM callbacks
    WHERE workspace_id = {part:0}
        AND {field:provider} = {part:1}
        AND {field:provider_id} = {part:2}
        AND report IS NOT NULL
    {apart}
) OR EXISTS (
    SELECT 1 FROM callbacks
    WHERE workspace_id = {part:0}
        AND {field:provider} = {part:1}
        AND {field:telephony_id} = {part:2}
        AND report IS NOT NULL
    {apart}
)

-- list --
-- Newest first.
SELECT {callbacks} FROM callbacks
WHERE workspace_id = :workspace_id
    AND (received_at, account_id, event_id) < (:after_at, :after_account, :after_event)
ORDER BY received_at DESC, account_id DESC, event_id DESC
LIMIT :limit
