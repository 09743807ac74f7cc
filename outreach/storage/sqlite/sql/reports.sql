-- replies_of --
-- The same messages for some numbers, with their texts.
SELECT inbound_messages.from_number, inbound_messages.received_at, inbound_messages.body
FROM json_each(:phones) AS wanted
CROSS JOIN inbound_messages INDEXED BY inbound_messages_by_sender
    ON inbound_messages.workspace_id = :workspace_id
    AND inbound_messages.from_number = wanted.value
    AND inbound_messages.received_at >= :since
    AND inbound_messages.received_at < :until
WHERE inbound_messages.archived_campaign IS NULL AND :number = (
    SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
    WHERE to_number = inbound_messages.from_number
        AND dispatches.workspace_id = :workspace_id
        AND created_at <= inbound_messages.received_at
        AND campaign_number IS NOT NULL
        AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
    ORDER BY dispatches.created_at DESC, dispatches.rowid DESC
    LIMIT 1
)
ORDER BY inbound_messages.received_at, inbound_messages.id

-- opt_outs_of --
-- The same opt-outs for some numbers.
SELECT unsubscribes.phone, unsubscribes.created_at
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes
    ON unsubscribes.workspace_id = :workspace_id
    AND unsubscribes.phone = wanted.value
    AND unsubscribes.created_at >= :since
    AND unsubscribes.created_at < :until
WHERE source IN ('keyword', 'carrier', 'call')
    AND archived_campaign IS NULL
    AND :number = (
        SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
        WHERE to_number = unsubscribes.phone
            AND dispatches.workspace_id = :workspace_id
            AND dispatches.created_at <= unsubscribes.created_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.rowid DESC
        LIMIT 1
    )
