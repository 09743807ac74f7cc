-- Phone numbers that a workspace sends or calls from.

-- get --
-- One number of a workspace.
SELECT * FROM numbers WHERE id = :number_id AND workspace_id = :workspace_id

-- by_phone --
-- The number that a message or a caller-ID group names by what is dialled.
SELECT * FROM numbers WHERE workspace_id = :workspace_id AND phone = :phone

-- insert --
-- A new number.
INSERT INTO numbers (id, workspace_id, phone, carrier, trunk_id, rate_per_minute, created_at)
VALUES (:id, :workspace_id, :phone, :carrier, :trunk_id, :rate_per_minute, :created_at)

-- update --
-- Every field but the key and the workspace.
UPDATE numbers SET
    phone = :phone,
    carrier = :carrier,
    trunk_id = :trunk_id,
    rate_per_minute = :rate_per_minute,
    created_at = :created_at
WHERE id = :id AND workspace_id = :workspace_id

-- delete --
-- Campaigns and messages name what is dialled, and keep it.
DELETE FROM numbers WHERE id = :number_id AND workspace_id = :workspace_id

-- list --
-- The first of a carrier is what POST /sms sends from.
SELECT * FROM numbers WHERE workspace_id = :workspace_id ORDER BY created_at, id
