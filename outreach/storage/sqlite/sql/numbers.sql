-- Phone numbers that a workspace sends or calls from.

-- by_phone --
-- The number that a message or a caller-ID group names by what is dialled.
SELECT {numbers} FROM numbers WHERE workspace_id = :workspace_id AND phone = :phone

-- list --
-- The first of a carrier is what POST /sms sends from.
SELECT {numbers} FROM numbers WHERE workspace_id = :workspace_id ORDER BY created_at, id
