-- The unsubscribe register.

-- list --
-- Paged in the order of the key: the register may hold millions.
SELECT {unsubscribes} FROM unsubscribes
WHERE workspace_id = :workspace_id AND phone > :after
ORDER BY phone
LIMIT :limit

-- scopes --
-- For loading and preflights: one key search for each number.
SELECT unsubscribes.phone, unsubscribes.scope
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT phone, scope FROM unsubscribes
    WHERE workspace_id = :workspace_id AND phone = wanted.value
    LIMIT 1
) AS unsubscribes

-- stopped_since --
-- The few entries that came while a campaign was loaded.
SELECT phone FROM unsubscribes
WHERE workspace_id = :workspace_id AND created_at >= :since AND scope IN ('all', :channel)

-- held --
-- Numbers under review, the latest first; few, with an index of their own.
SELECT {unsubscribes} FROM unsubscribes
WHERE scope = 'held'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND (created_at, workspace_id, phone) < (:after_at, :after_workspace, :after_phone)
ORDER BY created_at DESC, workspace_id DESC, phone DESC
LIMIT :limit
