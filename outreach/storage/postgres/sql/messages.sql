-- Single messages; campaigns' messages are in the ledger only.

-- last_reply --
-- The condition on the purpose allows the index of replies.
SELECT max(created_at) FROM messages
WHERE workspace_id = :workspace_id AND to_number = :phone AND purpose = :purpose AND purpose <> 'message'
