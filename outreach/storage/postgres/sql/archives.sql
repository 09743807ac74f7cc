-- replies_of --
-- In an archive: the messages that belong to a campaign in it.
SELECT inbound_messages.from_number, inbound_messages.received_at, inbound_messages.body
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM inbound_messages
    WHERE workspace_id = :workspace_id AND from_number = wanted.value AND archived_campaign = :number
    OFFSET 0
) AS inbound_messages
ORDER BY inbound_messages.received_at, inbound_messages.id

-- opt_outs_of --
-- The same for opt-outs.
SELECT unsubscribes.phone, unsubscribes.created_at
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM unsubscribes
    WHERE workspace_id = :workspace_id AND phone = wanted.value AND archived_campaign = :number
    LIMIT 1
) AS unsubscribes
