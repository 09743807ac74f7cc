-- Endpoints that events are delivered to, what waits for them, and what became of deliveries.

-- active --
-- Of all workspaces, for the processes that deliver; those that were removed are left out.
SELECT {webhooks} FROM webhooks INDEXED BY webhooks_in_use
WHERE removed_at IS NULL AND state = 'active' AND id > :after
ORDER BY id
LIMIT :limit

-- disabled --
-- By the engine: they need a person; of one workspace or of all.
SELECT {webhooks} FROM webhooks INDEXED BY webhooks_in_use
WHERE removed_at IS NULL AND state = 'disabled'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY id
LIMIT :limit

-- failing --
-- Active ones that have taken nothing since a moment: few; of one workspace or of all.
SELECT {webhooks} FROM webhooks INDEXED BY webhooks_in_use
WHERE removed_at IS NULL AND state = 'active'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND EXISTS (
        SELECT 1 FROM webhook_cursors
        WHERE webhook_cursors.workspace_id = webhooks.workspace_id AND webhook_cursors.webhook_id = webhooks.id
            AND webhook_cursors.failing_since <= :since
    )
ORDER BY id
LIMIT :limit

-- every --
-- Of all workspaces, also those that were removed: their attempts are kept for a while.
SELECT {webhooks} FROM webhooks WHERE id > :after ORDER BY id LIMIT :limit

-- holds --
-- In the order of their numbers, which is that of the key.
SELECT {webhook_holds} FROM webhook_holds
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id
ORDER BY number
LIMIT :limit

-- waiting --
-- How many events an endpoint holds, tests apart, up to a bound; the first one's number, and when one was tried first.
SELECT COUNT(*), MIN(number), MIN(first_at)
FROM (
    SELECT number, first_at FROM webhook_holds
    WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND number > 0
    ORDER BY number
    LIMIT :limit
) AS oldest

-- attempts --
-- The latest first: identifiers grow with time. Of those that failed or did not, a filter passes over ten thousand.
SELECT {webhook_attempts} FROM webhook_attempts INDEXED BY webhook_attempts_of_webhook
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND id < :before
    AND (:failed::int IS NULL OR :failed::int = CASE WHEN status BETWEEN 200 AND 299 THEN 0 ELSE 1 END)
ORDER BY id DESC
LIMIT :limit

-- forget_key --
-- As a person is erased: few events are held, and for days at most.
UPDATE webhook_holds SET key = 'erased:' || number WHERE workspace_id = :workspace_id AND key = :key

-- hasten_holds --
-- As an endpoint is to be tried at once. A first try by a clock that was ahead was now at the latest.
UPDATE webhook_holds SET next_at = :now, first_at = CASE WHEN first_at > :now THEN :now ELSE first_at END
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND next_at > :now

-- delete_holds --
-- As they are delivered again, or the endpoint is removed.
DELETE FROM webhook_holds
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id
    AND (:first::bigint IS NULL OR number >= :first::bigint)

-- first_attempt_since --
-- Of an endpoint; identifiers grow with time, so that only those that are to be deleted are passed over.
SELECT id FROM webhook_attempts INDEXED BY webhook_attempts_of_webhook
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND at >= :since
ORDER BY id
LIMIT 1

-- attempt_behind --
-- Of an endpoint, the latest one behind so many later ones: some thousands, of which only the index is read.
SELECT id FROM webhook_attempts INDEXED BY webhook_attempts_of_webhook
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id
ORDER BY id DESC
LIMIT 1 OFFSET :later

-- delete_attempts --
-- Those before an identifier, in slices, the oldest first.
DELETE FROM webhook_attempts WHERE {row} {in}
    SELECT {row} FROM webhook_attempts INDEXED BY webhook_attempts_of_webhook
    WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND id < :before
    ORDER BY id
    LIMIT :limit
{end}
