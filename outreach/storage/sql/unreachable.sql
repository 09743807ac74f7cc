-- Numbers that providers have reported as unreachable for good.

-- page --
-- In the order of the key: there may be millions.
SELECT {unreachable_numbers} FROM unreachable_numbers
WHERE workspace_id = :workspace_id AND (phone, channel) > (:after_phone, :after_channel)
ORDER BY phone, channel
LIMIT :limit

-- among --
-- Those of the contacts of a wave, by the key.
SELECT wanted.value AS phone FROM {each:phones}
WHERE EXISTS (
    SELECT 1 FROM unreachable_numbers
    WHERE workspace_id = :workspace_id AND phone = wanted.value AND channel = :channel
)

-- old --
-- Deletes those that are kept no longer, in slices.
DELETE FROM unreachable_numbers WHERE {row} {in}
    SELECT {row} FROM unreachable_numbers
    WHERE workspace_id = :workspace_id AND reported_at < :before
    LIMIT :limit
{end}
