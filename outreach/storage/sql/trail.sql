-- The decision trail.

-- of_recipient --
-- All entries of one recipient.
SELECT {trail} FROM trail INDEXED BY trail_of_campaign
WHERE campaign_number = :number AND position = :position
ORDER BY trail.number

-- of_campaign --
-- The entries of the campaign itself, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_campaign
WHERE campaign_number = :number AND position IS NULL
ORDER BY trail.number DESC
LIMIT :limit

-- of_workspace --
-- The entries of the workspace itself, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_workspace
WHERE workspace_id = :workspace_id AND what = 'workspace'
ORDER BY number DESC
LIMIT :limit

-- count_opt_outs --
-- A stretch of the table in its own order.
SELECT COALESCE(reason, 'operator'), COUNT(*) FROM trail
WHERE number > :after AND number <= :until AND what = 'opted_out'
GROUP BY 1
ORDER BY 1

-- of_number --
-- The entries of a number in any campaign, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_number
WHERE workspace_id = :workspace_id AND phone = :phone
ORDER BY number DESC
LIMIT :limit

-- opt_outs_of_person --
-- When a number came onto the register and left it, newest first; its replies are among the inbound messages.
SELECT {trail} FROM trail INDEXED BY trail_of_number
WHERE workspace_id = :workspace_id
    AND phone = :phone
    AND what IN ('opted_out', 'opted_in')
    AND (at, number) < (:after_at, :after_number)
ORDER BY at DESC, number DESC
LIMIT :limit

-- between --
-- A range of the key, as long as its reader asks for, even if little of it is the workspace's.
SELECT {trail} FROM trail
WHERE trail.number > :after
    AND trail.number <= :until
    AND (:workspace_id::text IS NULL OR trail.workspace_id = :workspace_id::text)
ORDER BY trail.number

-- purged_until --
-- A trigger records it, whichever client deletes.
SELECT until FROM trail_purged
