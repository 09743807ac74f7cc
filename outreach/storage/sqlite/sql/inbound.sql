-- What people wrote back.

-- insert --
-- As it came in.
INSERT INTO inbound_messages (id, workspace_id, from_number, to_number, body, received_at)
VALUES (:id, :workspace_id, :from_number, :to_number, :body, :received_at)

-- list --
-- Newest first.
SELECT * FROM inbound_messages
WHERE workspace_id = :workspace_id
ORDER BY received_at DESC, id DESC
LIMIT :limit

-- replied_since --
-- Whether a number has written at all: the first entry of the index tells.
SELECT 1 AS replied FROM inbound_messages
WHERE workspace_id = :workspace_id AND from_number = :phone AND received_at >= :since
LIMIT 1
