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
FROM archived_campaigns INDEXED BY archived_campaigns_to_erase
{join} campaigns ON campaigns.number = archived_campaigns.campaign_number
JOIN archives ON archives.id = archived_campaigns.archive_id
WHERE archived_campaigns.erase = 1
    AND (:workspace_id::text IS NULL OR campaigns.workspace_id = :workspace_id::text)
    AND archives.id NOT IN ({values:without})
ORDER BY archived_campaigns.campaign_number
LIMIT :limit

-- note_erasure --
-- The campaign is being erased, and with it the words of providers in its report.
UPDATE archived_campaigns SET erase = 1, figures = :figures WHERE campaign_number = :number

-- erased --
-- Its archive has erased it too.
UPDATE archived_campaigns SET erase = 0 WHERE campaign_number = :number
