-- Campaigns whose contacts and requests are in files of their own.

-- of_campaign --
-- Where the ledger of a campaign is.
SELECT archives.id, archives.file, archived_campaigns.state, archived_campaigns.figures
FROM campaigns
JOIN archived_campaigns ON archived_campaigns.campaign_number = campaigns.number
JOIN archives ON archives.id = archived_campaigns.archive_id
WHERE campaigns.id = :campaign_id AND campaigns.workspace_id = :workspace_id

-- list --
-- For operators; there are few.
SELECT archives.id, archives.file, archives.created_at, COUNT(campaigns.number)
FROM archives
LEFT JOIN archived_campaigns ON archived_campaigns.archive_id = archives.id
LEFT JOIN campaigns ON campaigns.number = archived_campaigns.campaign_number
WHERE :workspace_id::text IS NULL OR campaigns.workspace_id = :workspace_id::text
GROUP BY archives.id, archives.file, archives.created_at
ORDER BY archives.created_at, archives.id

-- to_erase --
-- Nearly always none.
SELECT campaigns.workspace_id, campaigns.id, campaigns.number, archives.id, archives.file
FROM archived_campaigns
JOIN campaigns ON campaigns.number = archived_campaigns.campaign_number
JOIN archives ON archives.id = archived_campaigns.archive_id
WHERE archived_campaigns.erase = 1
    AND (:workspace_id::text IS NULL OR campaigns.workspace_id = :workspace_id::text)
    AND archives.id NOT IN (SELECT json_array_elements_text(:without::json))
ORDER BY archived_campaigns.campaign_number
LIMIT :limit

-- note_erasure --
-- The campaign is being erased.
UPDATE archived_campaigns SET erase = 1 WHERE campaign_number = :number

-- erased --
-- Its archive has erased it too.
UPDATE archived_campaigns SET erase = 0 WHERE campaign_number = :number

-- replies_of --
-- In an archive: the messages that belong to a campaign in it.
SELECT inbound_messages.from_number, inbound_messages.received_at, inbound_messages.body
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM inbound_messages
    WHERE workspace_id = :workspace_id AND from_number = wanted.value AND archived_campaign = :number
    OFFSET 0
) AS inbound_messages
ORDER BY inbound_messages.received_at

-- opt_outs_of --
-- The same for opt-outs.
SELECT unsubscribes.phone, unsubscribes.created_at
FROM json_array_elements_text(:phones::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM unsubscribes
    WHERE workspace_id = :workspace_id AND phone = wanted.value AND archived_campaign = :number
    LIMIT 1
) AS unsubscribes
