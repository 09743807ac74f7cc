-- Single messages; campaigns' messages are in the ledger only.

-- list --
-- Newest first: identifiers sort in the order of their creation. The filter has an index in that order.
SELECT {messages} FROM messages
WHERE workspace_id = :workspace_id
    AND external_id = :external_id  -- if given
    AND {has_pair:messages.metadata|:metadata}  -- if given
    AND id < :after
ORDER BY id DESC
LIMIT :limit

-- last_reply --
-- The condition on the purpose allows the index of replies.
SELECT max(created_at) FROM messages
WHERE workspace_id = :workspace_id AND to_number = :phone AND purpose = :purpose AND purpose <> 'message'
    AND (:until::text IS NULL OR created_at <= :until::text)

-- to_person --
-- A number's single messages, newest first. The other index of numbers holds the replies alone.
SELECT {messages} FROM messages INDEXED BY messages_to_number
WHERE workspace_id = :workspace_id AND to_number = :phone AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit
