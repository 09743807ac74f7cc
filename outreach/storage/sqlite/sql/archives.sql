-- replies_of --
-- In an archive: the messages that belong to a campaign in it.
SELECT inbound_messages.from_number, inbound_messages.received_at, inbound_messages.body
FROM json_each(:phones) AS wanted
CROSS JOIN inbound_messages INDEXED BY inbound_messages_by_sender
    ON inbound_messages.workspace_id = :workspace_id
    AND inbound_messages.from_number = wanted.value
WHERE inbound_messages.archived_campaign = :number
ORDER BY inbound_messages.received_at, inbound_messages.id

-- opt_outs_of --
-- The same for opt-outs.
SELECT unsubscribes.phone, unsubscribes.created_at
FROM json_each(:phones) AS wanted
CROSS JOIN unsubscribes
    ON unsubscribes.workspace_id = :workspace_id
    AND unsubscribes.phone = wanted.value
WHERE unsubscribes.archived_campaign = :number
