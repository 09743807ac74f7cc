-- append --
-- Numbered by the database, in the order of the commits.
INSERT INTO trail ({trail}) VALUES ({trail_places})

-- prolong --
-- Extends the latest `held` entry: one entry for each reason, however long.
UPDATE trail SET due_at = ?1, repeats = repeats + 1
WHERE number = (
    SELECT MAX(number) FROM trail INDEXED BY trail_of_campaign
    WHERE campaign_number = ?2 AND position = ?3 AND what = 'held'
)

-- last_number --
-- Kept by SQLite, whatever is deleted.
SELECT seq FROM sqlite_sequence WHERE name = 'trail'
