-- The unsubscribe register.

-- get --
-- The entry of one number.
SELECT * FROM unsubscribes WHERE workspace_id = :workspace_id AND phone = :phone

-- put --
-- An entry, over the one that the number has.
INSERT INTO unsubscribes (workspace_id, phone, scope, source, evidence, created_at)
VALUES (:workspace_id, :phone, :scope, :source, :evidence, :created_at)
ON CONFLICT (workspace_id, phone) DO UPDATE SET
    scope = excluded.scope,
    source = excluded.source,
    evidence = excluded.evidence,
    created_at = excluded.created_at

-- delete --
-- Somebody wants to hear from us again.
DELETE FROM unsubscribes WHERE workspace_id = :workspace_id AND phone = :phone

-- list --
-- Page by page in the order of the key: the register may hold millions.
SELECT * FROM unsubscribes
WHERE workspace_id = :workspace_id AND phone > :after
ORDER BY phone
LIMIT :limit

-- stopped --
-- Asked before every intent and while loading: one search of the key for each number given.
SELECT unsubscribes.phone
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes ON unsubscribes.workspace_id = :workspace_id AND unsubscribes.phone = wanted.value
WHERE unsubscribes.scope IN ('all', :channel)

-- standing --
-- The same at the commit of campaigns' intents, which wait for who is held back until somebody has decided.
SELECT unsubscribes.phone, unsubscribes.scope
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes ON unsubscribes.workspace_id = :workspace_id AND unsubscribes.phone = wanted.value
WHERE unsubscribes.scope IN ('all', :channel, 'held')
