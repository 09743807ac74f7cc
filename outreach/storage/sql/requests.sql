-- Request windows and idempotency keys.

-- sweep --
-- In slices, the first to expire first.
DELETE FROM idempotency_keys WHERE {row} {in}
    SELECT {row} FROM idempotency_keys WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
{end}
