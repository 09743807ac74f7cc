-- The decision trail.

-- append --
-- Numbered in the order of the commits, because the writing transaction holds the fence.
WITH given AS (
    SELECT * FROM {trail_rows} WITH ORDINALITY AS given ({trail}, place)
), numbered AS (
    UPDATE trail_numbers SET last = last + (SELECT COUNT(*) FROM given) WHERE id = 1
    RETURNING last - (SELECT COUNT(*) FROM given) AS before
)
INSERT INTO trail (number, {trail_values})
SELECT numbered.before + given.place, {trail_values} FROM given CROSS JOIN numbered ORDER BY given.place

-- prolong --
-- Extends the latest `held` entry: one entry for each reason, however long.
UPDATE trail SET due_at = given.due_at, repeats = repeats + given.times
FROM (
    SELECT
        campaign_number,
        position,
        COUNT(*) AS times,
        (array_agg(due_at ORDER BY place DESC))[1] AS due_at
    FROM unnest(?::text[], ?::bigint[], ?::bigint[])
        WITH ORDINALITY AS each (due_at, campaign_number, position, place)
    GROUP BY campaign_number, position
) AS given
WHERE trail.number = (
    SELECT MAX(latest.number) FROM trail AS latest
    WHERE latest.campaign_number = given.campaign_number
        AND latest.position = given.position
        AND latest.what = 'held'
)

-- of_recipient --
-- All entries of one recipient.
SELECT {trail} FROM trail
WHERE campaign_number = :number AND position = :position
ORDER BY trail.number

-- of_campaign --
-- The entries of the campaign itself, the latest first.
SELECT {trail} FROM trail
WHERE campaign_number = :number AND position IS NULL
ORDER BY trail.number DESC
LIMIT :limit

-- of_workspace --
-- The entries of the workspace itself, the latest first.
SELECT {trail} FROM trail
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
SELECT {trail} FROM trail
WHERE workspace_id = :workspace_id AND phone = :phone
ORDER BY number DESC
LIMIT :limit

-- between --
-- A range of the key, as long as its reader asks for, even if little of it is the workspace's.
SELECT {trail} FROM trail
WHERE trail.number > :after
    AND trail.number <= :until
    AND (:workspace_id::text IS NULL OR trail.workspace_id = :workspace_id::text)
ORDER BY trail.number

-- last_number --
-- Kept beside the trail, whatever is deleted.
SELECT last AS seq FROM trail_numbers

-- purged_until --
-- A trigger records it, whichever client deletes.
SELECT until FROM trail_purged
