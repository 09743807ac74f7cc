-- Inbound messages.

-- list --
-- Newest first.
SELECT {inbound_messages} FROM inbound_messages
WHERE workspace_id = :workspace_id
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- list_unclear --
-- Newest first; few, with an index of their own.
SELECT {inbound_messages} FROM inbound_messages
WHERE workspace_id = :workspace_id AND unclear = 1
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- replied_since --
-- Whether a number has written: the first entry of the index is enough.
SELECT 1 FROM inbound_messages
WHERE workspace_id = :workspace_id AND from_number = :phone AND received_at >= :since
LIMIT 1

-- last_keyword --
-- Keywords count in the order in which they were written; read for each inbound keyword.
SELECT max(written_at) FROM inbound_messages
WHERE workspace_id = :workspace_id AND from_number = :phone AND keyword = :keyword
