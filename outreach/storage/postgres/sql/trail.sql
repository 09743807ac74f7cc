-- append --
-- Numbered in the order of the commits, because the row of `trail_numbers` is locked until then.
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

-- last_number --
-- Kept beside the trail, whatever is deleted.
SELECT last AS seq FROM trail_numbers
