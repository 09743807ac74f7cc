-- The unsubscribe register.

-- list --
-- Page by page in the order of the key: the register may hold millions.
SELECT {unsubscribes} FROM unsubscribes
WHERE workspace_id = :workspace_id AND phone > :after
ORDER BY phone
LIMIT :limit

-- stopped --
-- Asked while loading: one search of the key for each number given.
SELECT unsubscribes.phone
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes ON unsubscribes.workspace_id = :workspace_id AND unsubscribes.phone = wanted.value
WHERE unsubscribes.scope IN ('all', :channel)

-- held --
-- Who waits for somebody to decide, the latest first; few, so that they have an index of their own.
SELECT {unsubscribes} FROM unsubscribes
WHERE scope = 'held' AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
ORDER BY created_at DESC, workspace_id DESC, phone DESC
LIMIT :limit
