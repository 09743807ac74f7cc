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
