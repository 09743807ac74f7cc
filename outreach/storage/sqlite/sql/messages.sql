-- Single messages; those of campaigns live in the ledger alone.

-- get --
-- One message of a workspace.
SELECT * FROM messages WHERE id = :message_id AND workspace_id = :workspace_id

-- insert --
-- A new message.
INSERT INTO messages (
    id, workspace_id,
    to_number, from_number, carrier, body, segments, status, reason, attempts, tries, provider_id, purpose,
    send_until, created_at, ended_at
) VALUES (
    :id, :workspace_id,
    :to_number, :from_number, :carrier, :body, :segments, :status, :reason, :attempts, :tries, :provider_id,
    :purpose, :send_until, :created_at, :ended_at
)

-- update --
-- Everything but the key and the workspace.
UPDATE messages SET
    to_number = :to_number,
    from_number = :from_number,
    carrier = :carrier,
    body = :body,
    segments = :segments,
    status = :status,
    reason = :reason,
    attempts = :attempts,
    tries = :tries,
    provider_id = :provider_id,
    purpose = :purpose,
    send_until = :send_until,
    created_at = :created_at,
    ended_at = :ended_at
WHERE id = :id AND workspace_id = :workspace_id

-- last_reply --
-- Answers to keywords are bounded; the condition on the purpose lets the index of answers serve.
SELECT max(created_at) AS created_at FROM messages
WHERE workspace_id = :workspace_id AND to_number = :phone AND purpose = :purpose AND purpose <> 'message'
