-- scopes --
-- For loading and preflights: one key search for each number.
SELECT unsubscribes.phone, unsubscribes.scope
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes ON unsubscribes.workspace_id = :workspace_id AND unsubscribes.phone = wanted.value
