-- Inbound messages.

-- list --
-- Newest first.
SELECT {inbound_messages} FROM inbound_messages
WHERE workspace_id = :workspace_id AND (received_at, id) < (:after_at, :after_id)
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- list_unclear --
-- Newest first; few, with an index of their own.
SELECT {inbound_messages} FROM inbound_messages
WHERE workspace_id = :workspace_id AND unclear = 1 AND (received_at, id) < (:after_at, :after_id)
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- list_unanswered --
-- Newest first: without a keyword, which the engine answers, and without a single message to the sender since.
SELECT {inbound_messages} FROM inbound_messages
WHERE workspace_id = :workspace_id AND keyword IS NULL AND unclear >= :unclear AND received_at >= :since
AND (received_at, id) < (:after_at, :after_id)
AND NOT EXISTS (
    SELECT 1 FROM messages
    WHERE messages.to_number = inbound_messages.from_number AND messages.created_at >= inbound_messages.received_at
    AND messages.workspace_id = :workspace_id AND messages.purpose = 'message'
)
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- replied_since --
-- Whether a number has written: the last entry of the index is enough.
SELECT 1 FROM (
    SELECT MAX(received_at) AS received_at FROM inbound_messages
    WHERE workspace_id = :workspace_id AND from_number = :phone
) AS latest
WHERE received_at >= :since

-- senders_among --
-- The same for many numbers: one search of the index for each.
SELECT wanted.value FROM {each:phones}
WHERE (
    SELECT MAX(received_at) FROM inbound_messages INDEXED BY inbound_messages_by_sender
    WHERE workspace_id = :workspace_id AND from_number = wanted.value
) >= :since

-- last_keyword --
-- Keywords count in the order in which they were written; read for each inbound keyword.
SELECT max(written_at) FROM inbound_messages
WHERE workspace_id = :workspace_id AND from_number = :phone AND keyword = :keyword

-- last_unclear --
-- The same of what a person has to read; read for each START.
SELECT max(written_at) FROM inbound_messages INDEXED BY inbound_messages_by_sender
WHERE workspace_id = :workspace_id AND from_number = :phone AND unclear = 1

-- from_person --
-- What a number wrote, newest first.
SELECT {inbound_messages} FROM inbound_messages INDEXED BY inbound_messages_by_sender
WHERE workspace_id = :workspace_id AND from_number = :phone AND (received_at, id) < (:after_at, :after_id)
ORDER BY received_at DESC, id DESC
LIMIT :limit
