-- The decision trail.

-- append --
-- A campaign of another workspace, or none at all, gives no row to insert.
INSERT INTO trail (
    at, workspace_id, what, rule, state, reason, campaign_number, position, call_id, message_id, dispatch_id, step,
    attempt, leg, due_at, repeats, actor, phone
)
SELECT
    :at, :workspace_id, :what, :rule, :state, :reason, campaigns.number, :position, :call_id, :message_id, :dispatch_id,
    :step, :attempt, :leg, :due_at, :repeats, :actor, :phone
FROM (SELECT 1)
LEFT JOIN campaigns ON campaigns.id = :campaign_id AND campaigns.workspace_id = :workspace_id
WHERE :campaign_id IS NULL OR campaigns.number IS NOT NULL

-- prolong --
-- The latest of its holds; each of them is one reason, for however long.
UPDATE trail SET due_at = :due_at, repeats = repeats + 1
WHERE number = (
    SELECT MAX(number) FROM trail INDEXED BY trail_of_campaign
    WHERE campaign_number = (SELECT number FROM campaigns WHERE id = :campaign_id AND workspace_id = :workspace_id)
        AND position = :position
        AND what = 'held'
)

-- of_recipient --
-- All that is told of one recipient.
SELECT trail.*, campaigns.id AS campaign_id
FROM campaigns
CROSS JOIN trail INDEXED BY trail_of_campaign ON trail.campaign_number = campaigns.number
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND trail.position = :position
ORDER BY trail.number

-- of_campaign --
-- What concerned all of its recipients at once, the latest first.
SELECT trail.*, campaigns.id AS campaign_id
FROM campaigns
CROSS JOIN trail INDEXED BY trail_of_campaign ON trail.campaign_number = campaigns.number
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND trail.position IS NULL
ORDER BY trail.number DESC
LIMIT :limit

-- of_workspace --
-- What concerned all campaigns of a workspace at once, the latest first.
SELECT trail.*, NULL AS campaign_id FROM trail INDEXED BY trail_of_workspace
WHERE workspace_id = :workspace_id AND what = 'workspace'
ORDER BY number DESC
LIMIT :limit

-- of_number --
-- What concerned a number in whatever campaign, the latest first.
SELECT trail.*, NULL AS campaign_id FROM trail INDEXED BY trail_of_number
WHERE workspace_id = :workspace_id AND phone = :phone
ORDER BY number DESC
LIMIT :limit

-- between --
-- A stretch of the key: no longer than who reads it asks for, however little of it is a workspace's.
SELECT trail.*, campaigns.id AS campaign_id
FROM trail
LEFT JOIN campaigns ON campaigns.number = trail.campaign_number
WHERE trail.number > :after
    AND trail.number <= :until
    AND (:workspace_id IS NULL OR trail.workspace_id = :workspace_id)
ORDER BY trail.number

-- last_number --
-- Kept by SQLite, whatever is deleted.
SELECT seq FROM sqlite_sequence WHERE name = 'trail'
