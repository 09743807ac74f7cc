-- The decision trail.

-- append --
-- Numbered by the database, in the order of the commits.
INSERT INTO trail ({trail}) VALUES ({trail_places})

-- prolong --
-- The latest of its holds; each of them is one reason, for however long.
UPDATE trail SET due_at = ?1, repeats = repeats + 1
WHERE number = (
    SELECT MAX(number) FROM trail INDEXED BY trail_of_campaign
    WHERE campaign_number = ?2 AND position = ?3 AND what = 'held'
)

-- of_recipient --
-- All that is told of one recipient.
SELECT {trail} FROM trail INDEXED BY trail_of_campaign
WHERE campaign_number = :number AND position = :position
ORDER BY trail.number

-- of_campaign --
-- What concerned all of its recipients at once, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_campaign
WHERE campaign_number = :number AND position IS NULL
ORDER BY trail.number DESC
LIMIT :limit

-- of_workspace --
-- What concerned all campaigns of a workspace at once, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_workspace
WHERE workspace_id = :workspace_id AND what = 'workspace'
ORDER BY number DESC
LIMIT :limit

-- of_number --
-- What concerned a number in whatever campaign, the latest first.
SELECT {trail} FROM trail INDEXED BY trail_of_number
WHERE workspace_id = :workspace_id AND phone = :phone
ORDER BY number DESC
LIMIT :limit

-- between --
-- A stretch of the key: no longer than who reads it asks for, however little of it is a workspace's.
SELECT {trail} FROM trail
WHERE trail.number > :after
    AND trail.number <= :until
    AND (:workspace_id IS NULL OR trail.workspace_id = :workspace_id)
ORDER BY trail.number

-- last_number --
-- Kept by SQLite, whatever is deleted.
SELECT seq FROM sqlite_sequence WHERE name = 'trail'

-- purged_until --
-- Noted by a trigger, whoever deletes.
SELECT until FROM trail_purged
