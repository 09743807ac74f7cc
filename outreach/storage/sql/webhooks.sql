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

-- holds --
-- In the order of their numbers, which is that of the key.
SELECT {webhook_holds} FROM webhook_holds
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id
ORDER BY number
LIMIT :limit

-- attempts --
-- The latest first: identifiers grow with time.
SELECT {webhook_attempts} FROM webhook_attempts INDEXED BY webhook_attempts_of_webhook
WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND id < :before
ORDER BY id DESC
LIMIT :limit

-- forget_key --
-- As a person is erased: few events are held, and for days at most.
UPDATE webhook_holds SET key = 'erased:' || number WHERE workspace_id = :workspace_id AND key = :key

-- delete_holds --
-- As an endpoint starts from another position.
DELETE FROM webhook_holds WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id

-- delete_attempts --
-- Those before an identifier.
DELETE FROM webhook_attempts WHERE workspace_id = :workspace_id AND webhook_id = :webhook_id AND id < :before
