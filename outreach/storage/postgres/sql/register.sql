-- scopes --
-- For loading and preflights: one key search for each number.
SELECT unsubscribes.phone, unsubscribes.scope
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT phone, scope FROM unsubscribes
    WHERE workspace_id = :workspace_id AND phone = wanted.value
    LIMIT 1
) AS unsubscribes
