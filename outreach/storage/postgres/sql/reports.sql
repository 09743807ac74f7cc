-- replies_of --
-- The same messages for some numbers, with their texts.
SELECT inbound_messages.from_number, inbound_messages.received_at, inbound_messages.body
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM inbound_messages
    WHERE workspace_id = :workspace_id AND from_number = wanted.value
    OFFSET 0
) AS inbound_messages
WHERE inbound_messages.received_at >= :since
    AND inbound_messages.received_at < :until
    AND inbound_messages.archived_campaign IS NULL
    AND :number = (
    SELECT campaign_number FROM dispatches
    WHERE to_number = inbound_messages.from_number
        AND dispatches.workspace_id = :workspace_id
        AND created_at <= inbound_messages.received_at
        AND campaign_number IS NOT NULL
        AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
    ORDER BY dispatches.created_at DESC, dispatches.number DESC
    LIMIT 1
)
ORDER BY inbound_messages.received_at, inbound_messages.id

-- opt_outs_of --
-- The same opt-outs for some numbers.
SELECT unsubscribes.phone, unsubscribes.created_at
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM unsubscribes
    WHERE workspace_id = :workspace_id AND phone = wanted.value
    LIMIT 1
) AS unsubscribes
WHERE created_at >= :since
    AND created_at < :until
    AND source IN ('keyword', 'carrier', 'call')
    AND archived_campaign IS NULL
    AND :number = (
        SELECT campaign_number FROM dispatches
        WHERE to_number = unsubscribes.phone
            AND dispatches.workspace_id = :workspace_id
            AND dispatches.created_at <= unsubscribes.created_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.number DESC
        LIMIT 1
    )
